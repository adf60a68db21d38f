"""What a save writes, what counts as saved, and what servers lose."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cprsim.kernel.saving import Saver
from cprsim.kernel.shards import Shards
from cprsim.records import ShardBy, SmallTables, SubSaves

N_SERVERS = 4
TRACKED = SubSaves("round-robin", fraction=0.25, n_large_tables=3)


@pytest.fixture
def run(new_trainer):
    def new(how: SubSaves | None = None, by: ShardBy = ShardBy.ROWS, **plan):
        trainer = new_trainer(**plan)
        return trainer, Saver(trainer, Shards(trainer.shape.tables, N_SERVERS, by), how)

    return new


def held_by(saver: Saver, servers: list[int]) -> np.ndarray:
    held = np.zeros(len(saver.stored.table), bool)
    for segment in saver.shards.of_servers(servers):
        held[segment.rows] = True
    return held


@pytest.mark.parametrize("optimizer", ["sgd", "adagrad", "adam"])
@pytest.mark.parametrize("by", ShardBy)
def test_lost_servers_go_back_to_the_save_and_the_others_go_on(run, by, optimizer):
    trainer, saver = run(by=by, optimizer=optimizer)
    trainer.run(500)
    saver.save()
    saved = trainer.state()
    trainer.run(1000)
    late = trainer.state()
    saver.lose([1, 3])
    lost = held_by(saver, [1, 3])
    names = ["table"] + ([] if optimizer == "sgd" else ["row_state"])
    for name in names:
        now = trainer.state()[name]
        assert (now[lost] == saved[name][lost]).all()
        assert (now[~lost] == late[name][~lost]).all()
        assert (saved[name][lost] != late[name][lost]).any()
    assert (trainer.model.dense == late["dense"]).all()
    assert trainer.position == 1000


@pytest.mark.parametrize(("end", "is_of"), [("commit", 1000), ("abandon", 500)])
def test_a_save_holds_what_was_there_at_its_start_if_it_commits(run, end, is_of):
    trainer, saver = run()
    tables = {}
    for sample in (500, 1000):
        trainer.run(sample)
        tables[sample] = trainer.model.table.copy()
        saver.save() if sample == 500 else saver.start()
    trainer.run(1500)  # goes on while the save is written in the background
    getattr(saver, end)()
    saver.lose([2])
    lost = held_by(saver, [2])
    assert (trainer.model.table[lost] == tables[is_of][lost]).all()
    assert (tables[500][lost] != tables[1000][lost]).any()


def test_saves_come_one_at_a_time(run):
    _, saver = run()
    saver.start()
    for forbidden in (saver.start, lambda: saver.lose([0]), saver.fork):
        with pytest.raises(RuntimeError, match="a save is under way"):
            forbidden()
    saver.commit()
    with pytest.raises(RuntimeError, match="no save"):
        saver.commit()


@pytest.mark.parametrize(
    ("policy", "fresh"), [(SmallTables.EACH_INTERVAL, False), (SmallTables.EACH_SUB_SAVE, True)]
)
def test_small_tables_are_as_fresh_as_their_policy(run, policy, fresh):
    trainer, saver = run(replace(TRACKED, tracker="mfu", small_tables=policy))
    trainer.run(500)
    late = trainer.model.table[:43].copy()  # the two small tables at the front
    saver.save(ends_interval=False)
    trainer.run(600)
    saver.lose(range(N_SERVERS), takes_layers=True)
    assert (trainer.model.table[:43] == late).all() == fresh
