"""`cprsim rehearse --address` on two nodes of Ray, each in a network namespace of its own.

A node sees the other's address through one pair of virtual cables and nothing else of the network;
what it writes under its folder for temporary files, the other does not see.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.making import PROGRAM
from tests.rehearsal.test_command import SCENARIO, TINY

pytestmark = pytest.mark.long
if importlib.util.find_spec("ray") is None:
    pytest.skip("needs Ray: make rehearse-ray", allow_module_level=True)
if os.geteuid() != 0 or not shutil.which("ip"):
    pytest.skip("needs root and `ip` for network namespaces", allow_module_level=True)

NAMES = ("cpr-a", "cpr-b")
HOSTS = ("10.213.7.1", "10.213.7.2")
PORT = 26379
START = [
    sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats",
    "--num-cpus=0", "--object-store-memory=100000000",
]  # fmt: skip
SAVES = ("image-", "part-", "commit-")
START_S, ATTEMPTS = 180.0, 4


def ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no network namespaces here: {done.stderr.strip()}")


def start(root: Path, name: str, *options: str) -> subprocess.Popen[bytes]:
    """A node of Ray in a namespace, a folder of its own over `private`."""
    cover = 'mount -t tmpfs tmpfs "$0" && mkdir "$0/t" && export TMPDIR="$0/t" && exec "$@"'
    command = ["unshare", "-m", "sh", "-c", cover, str(root / "private"), *START, *options]
    with (root / f"{name}.log").open("w") as log:
        # each of these programs becomes the next
        return subprocess.Popen(["ip", "netns", "exec", name, *command], stdout=log, stderr=log)


def started(root: Path, name: str, *options: str) -> subprocess.Popen[bytes]:
    """A node that is there. On a busy machine Ray gives up after 30 s: then once more."""
    log = root / f"{name}.log"
    for _ in range(ATTEMPTS):
        node = start(root, name, *options)
        while node.poll() is None:
            if "Ray runtime started" in log.read_text():
                return node
            time.sleep(0.2)
        kill_all(name)
    pytest.fail(log.read_text())


def in_node(pid: int, root: Path, *command: str) -> subprocess.Popen[str]:
    """A program beside a node's process: same network, same files."""
    return subprocess.Popen(
        ["nsenter", f"--target={pid}", "--mount", "--net", f"--wd={Path.cwd()}", *command],
        env=os.environ | {"TMPDIR": str(root / "private" / "t")}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def kill_all(name: str) -> None:
    """Kill what runs in a namespace."""
    deadline = time.monotonic() + 20
    while (left := pids_in(name)) and time.monotonic() < deadline:
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)


def names_below(folder: Path) -> set[str]:
    """Of files; what vanishes meanwhile is left out."""
    return {file for _, _, files in os.walk(folder) for file in files}


def pids_in(name: str) -> list[int]:
    done = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=True)
    return [int(word) for word in done.stdout.split()]


def n_workers(name: str) -> int:
    """Processes of a node that come from its fork server, without that."""
    n = 0
    for pid in pids_in(name):
        try:
            n += b"cprsim.rehearsal.fork_server" in Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
    return max(n - 1, 0)


@pytest.fixture(scope="module")
def root() -> Iterator[Path]:
    """Short: sockets lie below it."""
    folder = Path(tempfile.mkdtemp(prefix="cpr"))
    for name in ("private", "shared"):
        (folder / name).mkdir()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def nodes(root: Path) -> Iterator[list[int]]:
    """A process of each of two nodes of a cluster; all is taken down at the end."""
    with ExitStack() as stack:
        for name in NAMES:
            ip("netns", "add", name)
            stack.callback(ip, "netns", "delete", name)
            stack.callback(kill_all, name)
        ip("link", "add", NAMES[0], "netns", NAMES[0], "type", "veth", "peer", NAMES[1],
           "netns", NAMES[1])  # fmt: skip
        for name, host in zip(NAMES, HOSTS, strict=True):
            ip("-n", name, "address", "add", f"{host}/24", "dev", name)
            for link in ("lo", name):
                ip("-n", name, "link", "set", link, "up")
        head = [f"--port={PORT}", "--head", "--include-dashboard=false",
                f"--temp-dir={root / 'private' / 'r'}"]  # fmt: skip
        pids = []
        for name, host, more in zip(
            NAMES, HOSTS, (head, [f"--address={HOSTS[0]}:{PORT}"]), strict=True
        ):
            node = started(root, name, f"--node-ip-address={host}", *more)
            stack.callback(node.wait)
            stack.callback(node.kill)
            pids.append(node.pid)
        yield pids


def test_a_rehearsal_over_two_nodes_that_share_the_remote_tier_alone(
    nodes: list[int], root: Path
) -> None:
    """The saves are in the shared folder, each node has its own processes, the bits are equal."""
    shared, private = root / "shared", str(root / "private")
    process = in_node(
        nodes[0], root, *PROGRAM, "rehearse", str(SCENARIO), *TINY, "--strategies", "full",
        "--set", "job.useful=6 s", "--json", "--out", str(root / "results"),
        "--address", f"{HOSTS[0]}:{PORT}", "--shared", str(shared),
    )  # fmt: skip
    most, seen = dict.fromkeys(NAMES, 0), set[str]()
    own = {name: set[str]() for name in NAMES}
    while process.poll() is None:
        time.sleep(0.2)
        seen |= names_below(shared)
        for name, pid in zip(NAMES, nodes, strict=True):
            most[name] = max(most[name], n_workers(name))
            own[name] = own[name] | names_below(Path(f"/proc/{pid}/root{private}"))
    told, said = process.communicate()
    assert process.returncode in (0, 1, 3), said
    if not told:
        pytest.skip(said)  # too busy to calibrate
    shown = json.loads(told)
    assert [one["replay"]["equal_bits"] for one in shown["attempts"]].count(False) == 0
    assert [one["replay"]["accounts"] for one in shown["attempts"]].count([]) == len(
        shown["attempts"]
    )
    assert min(most.values()) >= 2
    assert all(any(name.startswith(kind) for name in seen) for kind in SAVES)
    for name in NAMES:
        assert "material.json" in own[name]
        assert not [file for file in own[name] if file.startswith(SAVES)]
    assert names_below(Path(private)) == set()
    assert names_below(shared) == set()
    await_workers(0)


def await_workers(at_least: int, program: subprocess.Popen[str] | None = None) -> None:
    """Until each node has so many, while a program runs; with 0, until none has any."""
    deadline, found = time.monotonic() + START_S, []
    while time.monotonic() < deadline and (program is None or program.poll() is None):
        found = [n_workers(name) for name in NAMES]
        if min(found) >= at_least > 0 or max(found) == at_least:
            return
        time.sleep(0.2)
    pytest.fail(f"{found} processes on the nodes")


def test_no_process_survives_the_supervisor_on_any_node(nodes: list[int], root: Path) -> None:
    process = in_node(
        nodes[0], root, *PROGRAM, "rehearse", str(SCENARIO), *TINY, "--strategies", "full",
        "--set", "job.useful=60 s", "--set", "recovery.0.interval=20 s",
        "--out", str(root / "killed"), "--address", f"{HOSTS[0]}:{PORT}",
        "--shared", str(root / "shared"),
    )  # fmt: skip
    try:
        await_workers(2, process)
    finally:
        process.kill()
        print(*process.communicate())
    await_workers(0)
