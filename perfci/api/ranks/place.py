"""Which of the ranks one is, and the variables by which it knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Which of ``world`` ranks, and which of ``local_world`` on the ``node``th of ``nodes``.

    ``host`` is that node's name where a launcher started the rank.
    """

    rank: int
    world: int
    local_rank: int
    local_world: int
    node: int = 0
    nodes: int = 1
    host: str = ""

    @property
    def launched(self) -> bool:
        """Whether a launcher started it, not its worker."""
        return bool(self.host)


def environment(place: Place, master: tuple[str, int], own: Mapping[str, str]) -> dict[str, str]:
    """Return torchrun's variables and a rank's share of the threads that ``own`` variables name."""
    found = {
        "RANK": place.rank,
        "LOCAL_RANK": place.local_rank,
        "ROLE_RANK": place.rank,
        "GROUP_RANK": place.node,
        "WORLD_SIZE": place.world,
        "LOCAL_WORLD_SIZE": place.local_world,
        "ROLE_WORLD_SIZE": place.world,
        "GROUP_WORLD_SIZE": place.nodes,
        "MASTER_ADDR": master[0],
        "MASTER_PORT": master[1],
        "TORCHELASTIC_USE_AGENT_STORE": True,  # `env://` joins the store that is there
        "TORCHELASTIC_RESTART_COUNT": 0,
        "TORCHELASTIC_MAX_RESTARTS": 0,
        "TORCHELASTIC_RUN_ID": "perfci",
    }
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        if (threads := own.get(name, "")).isdigit():
            found[name] = max(1, int(threads) // place.local_world)
    return {name: str(value) for name, value in found.items()}
