"""Programs of several devices: what each computes with its block of arrays, and what they exchange.

mesh, partition_spec   devices in a grid; which axes of arrays are divided over which of its axes
sharded_buffer         the memory of an Array in blocks
gathered               such an Array of several processes, whole in each
sharding               how the arguments and results of a program are divided
shard                  functions of blocks, mapped over a mesh
collectives, halo      psum, all_gather, ppermute and their relatives; elements next to a block
uniformity             the check that devices meet in each collective
"""

from tracegraph.public_names import set_all as _set_all
from tracegraph.sharding.collectives import *
from tracegraph.sharding.halo import *
from tracegraph.sharding.mesh import *
from tracegraph.sharding.partition_spec import *
from tracegraph.sharding.shard import *

_set_all(__name__)
