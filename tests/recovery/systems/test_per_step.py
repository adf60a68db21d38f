"""Copies in each step, saves after the failure, undo and replay: what is lost, by hand."""

from __future__ import annotations

from math import sqrt

from tests.recovery.systems.by_hand import (
    ALL,
    BACK,
    COPY_H,
    LOAD_H,
    NODE,
    PERSIST_H,
    PROCESS,
    RACK,
    SNAPSHOT_H,
    STEP_H,
    approx,
    facts,
    planned,
    spent,
)

AT_H = 5.3125 + STEP_H / 4  # a quarter of a step is done
NO_SAVES = {"backstop": 16.0}  # as long as the job


def after(name: str, slots: object = (0,), scope: int = NODE, **options: object) -> object:
    return spent(planned(name, **options), (AT_H, slots, scope))


def test_just_in_time_saves_after_the_failure_and_retries_the_step() -> None:
    found = after("just-in-time", **NO_SAVES)
    save_h = SNAPSHOT_H + PERSIST_H
    assert found == approx(BACK | {"lost": STEP_H / 4, "save": save_h, "load": LOAD_H})


def test_just_in_time_goes_back_to_a_save_without_a_replica() -> None:
    lost_h = after("just-in-time", range(8), ALL, **NO_SAVES)["lost"]
    assert lost_h == approx(AT_H)
    assert after("just-in-time", (0, 4), RACK, group=4, **NO_SAVES)["lost"] == approx(AT_H)
    assert after("just-in-time", (0, 1), RACK, group=4, **NO_SAVES)["lost"] == approx(STEP_H / 4)


def test_flashrecovery_copies_from_a_replica_and_saves_nothing() -> None:
    found = after("flashrecovery", **NO_SAVES)
    assert found == approx(BACK | {"lost": STEP_H / 4, "load": COPY_H})


def test_shadow_servers_outlive_the_whole_job() -> None:
    for slots, scope in (((0,), PROCESS), ((0,), NODE), (range(8), ALL)):
        found = after("checkmate", slots, scope, shadow_nodes=3)
        assert found == approx(BACK | {"lost": STEP_H / 4, "load": COPY_H})
    assert planned("checkmate", shadow_nodes=3).tax.nodes == 3.0


def test_adacheck_copies_a_part_as_often_as_that_fits() -> None:
    part, whole = planned("adacheck", unique=0.25), planned("gemini")
    assert part.captures[0].every_h == STEP_H  # 1/16 h by the link, as long as a step
    assert whole.captures[0].every_h == 4 * STEP_H
    assert (part.tax.memory, whole.tax.memory) == (0.5, 2.0)
    assert after("adacheck", unique=0.25)["load"] == approx(COPY_H)  # of all of it


def test_fftrainer_s_ring_loses_pairs_that_gemini_s_groups_do_not() -> None:
    assert after("fftrainer", (1, 2), RACK)["load"] == approx(LOAD_H)
    assert after("gemini", (1, 2), RACK)["load"] == approx(COPY_H)
    assert after("fftrainer", (2,), NODE)["load"] == approx(COPY_H)


def test_undo_repeats_a_whole_step() -> None:
    assert after("swift-undo", **NO_SAVES)["lost"] == approx(STEP_H)
    late = spent(planned("swift-undo", **NO_SAVES), (AT_H + STEP_H / 2, (0,), NODE))
    assert late["lost"] == approx(STEP_H)


def test_the_struck_replay_their_neighbours_logs_while_the_others_wait() -> None:
    options = {"every": 4.0, "replay_speed": 2.0}
    found = after("swift", **options)
    since_h = AT_H - SNAPSHOT_H - 4.0
    assert found["replay"] == approx(since_h / 2)
    assert "lost" not in found
    # with its log, which lies on the next node, everybody goes back
    pair = after("swift", (3, 4), RACK, **options)
    assert pair["lost"] == approx(since_h)
    assert "replay" not in pair
    assert "replay" in after("swift", (3, 5), RACK, **options)


def test_swift_saves_at_the_interval_for_its_replays() -> None:
    (capture,) = planned("swift", facts(useful_h=1e4), replay_speed=4.0).captures
    assert capture.every_h == approx(sqrt(2 * SNAPSHOT_H * 4 * 64.0))
