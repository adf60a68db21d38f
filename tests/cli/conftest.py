"""The program called on the small scenario in this process."""

import pytest

from tests.making import call


@pytest.fixture
def cprsim(scenario, undrawn):
    """Call the program in this process, without the second that the figures take."""
    return call
