"""Sweeps: the same numbers as single runs, and the same bytes whoever computes them."""

import errno
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import cprsim
from cprsim.commands.sweep.folder import load_sweep
from cprsim.errors import ParameterError
from cprsim.results.folder import exclusive_lock
from cprsim.results.metrics import (
    ALWAYS_NAMED,
    BEYOND,
    METRICS,
    differences,
    frame_of,
    replication_rows,
    summarise,
)
from cprsim.results.pipeline import simulate
from cprsim.scenario.assemble import assemble
from cprsim.scenario.reading import load_scenario
from tests.making import call

AXES = ("costs.save=1 min,5 min", "failures.mtbf=15 h,30 h", "recovery.full.interval=1 h:4 h:log2")
NUMBERS = ["mean", "low", "high"]


def sweep(scenario: Path, *options: object) -> dict[str, object]:
    done = call("sweep", scenario, *axes_of(*AXES), "--workers", 1, "--json", *options)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


PARTS = ["regroup_fraction", "degraded_fraction"]


@pytest.mark.parametrize(
    ("changes", "further"),
    [
        ([], []),
        (["accuracy.curve=criteo-kaggle-linear"], []),
        (["recovery=[full, {strategy: hsdp, options: {group: 2, copy: 1 min}}]"], PARTS),
        (["cluster={emb_ps: 4, trainers: 2, spares: 1, repair: 2 h}",
          "simulation={seed: 5, precision: 5 %, at_most: 300}"], []),
        # without saves it does not finish
        (["job={useful: 300 h, horizon: 900 h}", "simulation.replications=6"], []),
    ],
)  # fmt: skip
def test_a_point_is_what_a_run_of_the_same_scenario_gives(
    scenario, undrawn, changes, further
) -> None:
    said = sweep(scenario, *(part for one in changes for part in ("--set", one)))
    table = load_sweep(said["folder"]).table
    point = ["costs.save=5 min", "failures.mtbf=30 h", "recovery.full.interval=4 h"]
    there = (table["costs.save_min"] == 5) & (table["failures.mtbf_h"] == 30)
    there &= table["recovery.full.interval_h"] == 4
    mine = table[there].set_index(["strategy", "quantity"])
    experiment = assemble(load_scenario(scenario, [*changes, *point]))
    outcome = simulate(experiment)
    single = frame_of(summarise(outcome)).set_index(["strategy", "quantity"])
    single = single[single.index.isin(mine.index)]
    assert list(mine.index) == list(single.index)
    without_curve = set() if "curve" in str(changes) else {*ALWAYS_NAMED.values(), BEYOND}
    assert set(METRICS) - set(mine.index.levels[1]) == without_curve
    assert set(further) <= set(mine.index.levels[1])
    np.testing.assert_allclose(mine[NUMBERS], single[NUMBERS], rtol=1e-9, atol=1e-12)
    rows, n_nodes = replication_rows(outcome), experiment.cluster.n_nodes
    paired = frame_of(differences(rows, n_nodes, "full")).set_index(["strategy", "quantity"])
    paired = paired[paired.index.isin(mine.index)]
    columns = ["difference", "difference_low", "difference_high"]
    np.testing.assert_allclose(
        mine.loc[paired.index, columns], paired[NUMBERS], rtol=1e-9, atol=1e-12
    )
    assert mine.loc["full", columns].isna().all(axis=None)


def stored() -> set[tuple[str, int]]:
    """The finished points, and when each was written."""
    files = Path("results/points").rglob("*.json")
    return {(path.name, path.stat().st_mtime_ns) for path in files}


def contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.name != "manifest.json"}


def contents_below(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*.json")}


@pytest.mark.long
def test_the_same_bytes_whatever_the_number_of_workers(scenario, undrawn, tmp_path) -> None:
    one = Path(sweep(scenario, "--out", tmp_path / "one")["folder"])
    two = Path(sweep(scenario, "--workers", 2, "--out", tmp_path / "two")["folder"])
    assert one.name == two.name
    assert contents(one) == contents(two)
    assert contents_below(tmp_path / "one" / "points") == contents_below(tmp_path / "two/points")


def test_a_folder_that_can_t_be_written_to_is_said_before_the_work(scenario) -> None:
    nowhere = call("sweep", scenario, "--over", "costs.load=1 s", "--out", "/proc/nowhere")
    assert nowhere.exit_code == 1
    assert nowhere.stderr == "cprsim: can't write to /proc/nowhere: No such file or directory\n"
    assert not Path("results").exists()


def test_a_longer_axis_computes_its_new_points_only(scenario, undrawn) -> None:
    for over, n_new in (("1 min,2 min", 2), ("1 min,90 s,2 min", 1), ("1 min,90 s,2 min", 0)):
        before = stored()
        done = call("sweep", scenario, "--over", f"costs.load={over}", "--workers", 1)
        assert done.exit_code == 0, done.output
        assert len(stored() - before) == n_new


def test_texts_and_mappings_make_the_same_sweep_which_is_read_back(scenario, tmp_path) -> None:
    over = {"failures.mtbf": ["5 h", "10 h"], "costs.save": "1 min:4 min:log2"}
    swept = cprsim.sweep(scenario, over, replications=4, workers=1, folder=tmp_path / "kept")
    points, axes = swept.frames["points"], swept.values["axes"]
    assert axes == ["failures.mtbf_h", "costs.save_min"]
    assert len(points) == 2 * 2 * 4
    least = points.groupby(axes, sort=False)["overhead_fraction"].min()
    assert points.loc[points["cheapest"], "overhead_fraction"].tolist() == least.tolist()
    table = swept.frames["overhead"].melt(axes, var_name="strategy", value_name="overhead")
    both = points.merge(table, on=[*axes, "strategy"])
    assert both["overhead_fraction"].tolist() == both["overhead"].tolist() != []
    for wrong in ({"metric": "lost"}, {"strategy": "partially"}, {"colour": "red"}):
        with pytest.raises(ParameterError, match="figure 'map' takes"):
            swept.plot("map", **wrong)
    texts = ["failures.mtbf=5 h, 10 h", "costs.save=1 min:4 min:log2"]
    again = cprsim.sweep(scenario, texts, replications=4, workers=1)
    assert [one.equals(again.frames[name]) for name, one in swept.frames.items()] == [True] * 2
    kept = cprsim.read(swept.folder)
    assert kept.frames["points"].equals(points)
    again = call("report", kept.folder, "--figures", tmp_path / "again", "--format", "png")
    assert again.exit_code == 0, again.output
    for figure in ("curves.png", "map.png"):
        (drawn,) = (tmp_path / "again").glob(f"*{figure}")
        assert drawn.read_bytes() == (kept.folder / figure).read_bytes()


def test_what_an_axis_does_not_touch_is_one_row(scenario) -> None:
    over = ["recovery.full.interval=10 min:100 h:log3", "failures.mtbf=15 h,30 h"]
    swept = cprsim.sweep(scenario, over, replications=20, workers=1)
    table = swept.document.table
    rows = {tuple(row[:2]): [bool(cell) for cell in row[2:]] for row in table.rows}
    for mtbf in ("15 h", "30 h"):
        for interval in ("10 min", "244.9 min", "100 h"):
            assert rows.pop((interval, mtbf)) == [False, True, False, False]
        assert rows.pop(("any", mtbf)) == [True, False, True, True]
    assert not rows
    alone = cprsim.sweep(scenario, over, mode="one-at-a-time", replications=20, workers=1)
    assert [[bool(cell) for cell in row[2:]] for row in alone.document.table.rows] == [
        *[[False, True, False, False]] * 3, *[[True] * 4] * 3
    ]  # fmt: skip


# ----------------------------------------------------------------------------- what goes wrong


def axes_of(*texts: str) -> list[str]:
    return [part for text in texts for part in ("--over", text)]


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
SAID = (
    "cprsim: can't write to results/points: No space left on device; 4 of 8 points are finished "
    "and kept: the same command continues from there\n"
)


@pytest.mark.parametrize(
    ("stop", "code", "said"), [(KeyboardInterrupt(), 130, ""), (FULL, 1, SAID)]
)
def test_a_sweep_that_stops_goes_on_where_it_was(
    scenario, undrawn, monkeypatch, stop, code, said
) -> None:
    replace, left = os.replace, [4]

    def until_it_stops(draft: Path, path: Path) -> None:
        if not left[0]:
            raise stop
        left[0] -= 1
        replace(draft, path)

    with monkeypatch.context() as patched:
        patched.setattr("cprsim.commands.sweep.points.MOST_TOGETHER", 1)
        patched.setattr("cprsim.results.store.os.replace", until_it_stops)
        done = call("sweep", scenario, *axes_of(*AXES), "--workers", 1)
    assert done.exit_code == code
    assert done.stderr.endswith(said)
    assert not list(Path("results").glob("small-sweep-*"))
    assert not list(Path("results/points").glob(".*"))
    before = stored()
    sweep(scenario)
    assert (len(before), len(stored() - before)) == (4, 4)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        *(("points/*/*.json", text, "1 damaged point computed anew: {victim}")
          for text in (b"", b"{}")),
        ("*/sweep.csv", b"nothing", "{folder} is damaged: sweep.csv differs from its digest; it is "
         "made anew"),
    ],
)  # fmt: skip
def test_what_is_damaged_is_made_anew_and_said(scenario, undrawn, name, text, said) -> None:
    folder = Path(sweep(scenario)["folder"])
    before = contents(folder)
    victim = sorted(Path("results").glob(name))[-1]
    whole = victim.read_bytes()
    victim.write_bytes(text)
    if victim.parent != folder:
        shutil.rmtree(folder)
    done = call("sweep", scenario, *axes_of(*AXES), "--workers", 1)
    assert done.exit_code == 0
    assert done.stderr == f"cprsim: {said.format(victim=victim, folder=folder)}\n"
    assert victim.read_bytes() == whole
    assert contents(folder) == before


def test_the_same_sweep_twice_at_once_is_refused(scenario, undrawn) -> None:
    folder = Path(sweep(scenario)["folder"])
    shutil.rmtree(folder)
    with exclusive_lock(folder):
        done = call("sweep", scenario, *axes_of(*AXES), "--workers", 1)
    assert done.exit_code == 2
    assert f"is being made by another process (number {os.getpid()}): wait for it" in done.stderr
    assert not folder.exists()
    before = stored()
    sweep(scenario)
    assert stored() == before
    assert not list(Path("results").glob(".*"))


def test_a_warning_is_said_once_with_the_number_of_its_points(scenario: Path) -> None:
    changes = ["costs.save={stall: 1 s, background: 1 min}", "recovery=[full]"]
    over = {"costs.save.background": "1 min,20 h,30 h", "failures.mtbf": "15 h,30 h"}
    swept = cprsim.sweep(scenario, over, changes, replications=4, workers=1)
    (said,) = swept.values["warnings"]
    assert said.startswith("At 4 of 6 points, e.g. full: a save to `remote` runs in the back")
