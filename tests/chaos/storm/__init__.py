"""A storm: the whole stack under load while its processes are killed, checked against a small oracle.

``Scale`` says how much, ``storm`` does it. All that is random follows from one seed: who is killed when, what is
published, who reads what. The kernel's timing does not, so a seed repeats the storm and not each of its raindrops.
"""

from tests.chaos.storm.scale import Scale
from tests.chaos.storm.storm import storm

__all__ = ["Scale", "storm"]
