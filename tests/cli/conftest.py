"""Ways to run the program on the small scenario: in this process, or as users do."""

from __future__ import annotations

import subprocess

import pytest

from tests.making import PROGRAM, UNDRAWING_PROGRAM, call


@pytest.fixture
def cprsim(scenario, undrawn):
    """Call the program in this process, without the second that the figures take."""
    return call


@pytest.fixture
def program(scenario):
    """Call the program as its own process."""
    return process_of(PROGRAM)


@pytest.fixture
def undrawing_program(scenario):
    """Call the program as its own process, without the seconds that the figures take."""
    return process_of(UNDRAWING_PROGRAM)


def process_of(program):
    def run(*arguments, **options) -> subprocess.CompletedProcess[str]:
        command = [*program, *(str(argument) for argument in arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False, **options)

    run.command = program
    return run


@pytest.fixture
def listing(tmp_path):
    """What stands in the folder that the test works in, besides the scenario."""
    return lambda: sorted(path.name for path in tmp_path.iterdir() if path.name != "small.yaml")
