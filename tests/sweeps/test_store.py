"""A finished point in its store, and an axis in a sweep's folder: read back as written."""

from __future__ import annotations

from types import SimpleNamespace

from cprsim.results.store import PointStore, Task
from cprsim.workers import Workers


def test_what_is_missing_is_computed_once_and_told_of_as_it_is_done(tmp_path):
    store, told, asked = PointStore(tmp_path), [], []
    store.folder.mkdir()
    store.put("01", {"value": 1}, tmp_path)
    points = [SimpleNamespace(digest=digest) for digest in ("03", "01", "02", "03")]

    def tasks_of(missing):
        asked.append([point.digest for point in missing])
        return [Task("a point", [one], int(one)) for one in asked[-1]]

    def values(number):
        return [{"value": number}]

    def tell(*numbers):
        told.append(numbers)

    def finished():
        bodies, n_computed = store.complete(points, values, tasks_of, Workers(1), tell)
        return [dict(body) for body in bodies], n_computed

    wanted = [{"value": value} for value in (3, 1, 2, 3)]
    assert finished() == (wanted, 2)
    assert (asked, told) == ([["03", "02"]], [(0, 2), (1, 2), (2, 2)])
    assert finished() == (wanted, 0)
    assert (asked[1:], told[3:]) == ([], [])
