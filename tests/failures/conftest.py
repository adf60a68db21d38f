import pytest

from cprsim.job.records import Cluster, Holds, Role


@pytest.fixture
def cluster() -> Cluster:
    """Three trainers in slots 0 to 2, four embedding servers in 3 to 6, a reader in 7."""
    return Cluster(
        (
            Role("trainer", 3, Holds.REPLICA),
            Role("emb_ps", 4, Holds.SHARD),
            Role("reader", 1, Holds.NOTHING),
        )
    )
