"""Programs of several devices: what each computes with its block of arrays, and what they exchange.

collectives   psum, all_gather, ppermute and their relatives
uniformity    the check that devices meet in each collective
"""

from tracegraph.public_names import set_all as _set_all
from tracegraph.sharding.collectives import *

_set_all(__name__)
