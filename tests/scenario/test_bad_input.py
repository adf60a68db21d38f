"""Every kind of wrong scenario, and files that are none: line, key and what would be right."""

from pathlib import Path

import pytest

from tests.scenario.writing import changed, problems, write

# The line of each key is that of GOOD_TEXT: 2 job, 3 cluster, 7 failures, 9 costs, 13 recovery.
ONE_WRONG = {
    "unknown key": (("  trainers: 20", "  trainer: 20"), 4, "cluster.trainer", "`trainers`"),
    "missing unit": (("useful: 50 h", "useful: 50"), 2, "job.useful", "write its unit"),
    "negative": (("useful: 50 h", "useful: -50 h"), 2, "job.useful", "between 1 s and 100000 h"),
    "no kind": (
        ("kind: injected, ", ""), 7, "failures.kind",
        "job, node, correlated, injected, trace"),
    "transfer without storage": (
        ("storage: {bandwidth: 25 Gbit/s}\n", ""), 9, "costs.save", "needs `storage"),
    "transfer without bytes": (
        ("  shard_size: 50 GB\n", ""), 9, "costs.save", "`cluster.shard_size`"),
    "missing cost": (("  load: 3 min\n", ""), 9, "costs.load", "loading state after a failure"),
    "target that the short form lacks": (
        ("- full", "- cpr"), 14, "recovery.0", "is missing"),
    "no such strategy": (("- full", "- ful"), 14, "recovery.0", "`full`"),
    "same name twice": (
        ("- full", "- {strategy: cpr, target_pls: 0.2}"), 15, "recovery.1", "name: cpr-2"),
    "no target": ((", target_pls: 0.1", ""), 15, "recovery.1.target_pls", "is missing"),
    "section that is a number": (("job: {useful: 50 h}", "job: 50"), 2, "job", "not a section"),
    "key twice": (("  shard_size: 50 GB", "  emb_ps: 4"), 6, "cluster.emb_ps", "line 5 has it"),
    "range beside the value": (
        ("name: good", "name: good\nunknown: {costs.load: {low: 5 min, high: 9 min}}"),
        2, "unknown.costs.load", "leaves out the value itself, `3 min`"),
    "tag": (("name: good", "name: !!python/name:os.system good"), 1, "", "not allowed"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("replacement", "line", "key", "hint"), ONE_WRONG.values(), ids=list(ONE_WRONG)
)
def test_one_wrong_thing_is_named_with_line_key_and_remedy(
    tmp_path: Path, replacement: tuple[str, str], line: int, key: str, hint: str
) -> None:
    path = write(tmp_path, changed(replacement))
    found = {(p.place.line, p.key): p.message for p in problems(path)}
    assert hint in found.get((line, key), ""), found


def test_all_wrong_things_come_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        changed(
            ("useful: 50 h", "useful: 50"), ("trainers: 20", "trainer: 20"), ("- full", "- f")
        ),
    )  # fmt: skip
    found = problems(path)
    assert [(p.place.line, p.key) for p in found] == [
        (2, "job.useful"), (4, "cluster.trainer"), (14, "recovery.0")
    ]  # fmt: skip
    assert all(p.place.file == path for p in found)


def test_rules_between_sections_come_once_each_section_is_right(tmp_path: Path) -> None:
    text = changed(("together: 4", "together: 19"), ("  load: 3 min", "  load: transfer"))
    text = text.replace("storage: {bandwidth: 25 Gbit/s}\n", "")
    keys = [p.key for p in problems(write(tmp_path, text))]
    assert keys == ["failures.together", "costs.save", "costs.load"]
    text = changed(("together: 4", "together: 19"), ("storage:", "storages:"))
    assert [p.key for p in problems(write(tmp_path, text))] == ["storages"]


def test_a_problem_stays_on_one_line_whatever_the_value(tmp_path: Path) -> None:
    path = write(tmp_path, changed(("load: 3 min", r'load: "3\n\e[31m min"')))
    (found,) = problems(path)
    assert str(found).isprintable()


NO_SCENARIO = {
    "empty": (b"", None, "is empty"),
    "a list": (b"- 1\n- 2\n", 1, "is not a mapping"),
    "broken YAML": (b"job: {useful: 50 h}\ncosts: {save: 1 h\nx", 3, "is not valid YAML"),
    "unquoted variable in braces": (b"job: {{x}: 1}", 1, "key must be plain text"),
    "two documents": (b"job: {}\n---\njob: {}\n", 2, "is not valid YAML"),
    "Latin-1": (b"name: caf\xe9", None, "'utf-8' codec can't decode"),
    "binary": (bytes(range(1, 128)), None, "special characters are not allowed"),
    "alias of itself": (b"a: &a [*a]", None, "nested too deeply, or in itself"),
    "deep lists": (b"[" * 100_000, None, "nested too deeply"),
    "50 MB": (b"x" * 50_000_000, None, "has more than 500000 bytes"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "line", "hint"), NO_SCENARIO.values(), ids=list(NO_SCENARIO))
def test_what_is_no_scenario_says_so(
    tmp_path: Path, content: bytes, line: int | None, hint: str
) -> None:
    path = write(tmp_path, content)
    found = problems(path)
    assert found[0].place.file == path
    assert found[0].place.line == line
    assert hint in found[0].message


def test_paths_that_are_no_file(tmp_path: Path) -> None:
    assert "No such file" in problems(tmp_path / "none.yaml")[0].message
    near = write(tmp_path, changed(("name: good", "name: near")))
    assert f"did you mean `{near}`?" in problems(near.with_suffix(".yml"))[0].message
    assert "cannot be read: Is a directory" in problems(tmp_path)[0].message
    assert "cannot be read" in problems(tmp_path / ("x" * 5000))[0].message
