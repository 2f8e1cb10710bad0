"""Programs of several processes: how they find one another. The names are those of JAX.

Call `initialize()` before the first `Mesh`; a mesh then spans the devices of all processes.
torchrun, mpirun and srun say by environment variables who is who; alone, a process is its own first
one.

>>> initialize()  # nothing to do in a process that no launcher has started
>>> process_index(), process_count()
(0, 1)

    launchers       who is who, by the environment variables of launchers
    membership      initialize and shutdown; this process among the others
    channel         what this process says to the others, and waits for
    tickets         a wait, and how it ends
    timeouts        how long devices and processes wait for one another
    hub, meetings   the first process, which all others are connected to: who waits for whom
    messages        a header and bytes, on a connection
"""

from tracegraph.distributed.membership import *
from tracegraph.distributed.timeouts import *
from tracegraph.public_names import set_all as _set_all

_set_all(__name__)
