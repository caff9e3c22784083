"""Work in other processes: ranks, a child, a data loader's workers."""

from work import processes

import perfci


@perfci.benchmark
def data_loader():
    return processes.data_loader()


@perfci.benchmark
def child():
    return processes.child()


@perfci.benchmark
def ranks():
    return perfci.distributed(processes.rank, ranks=2, backend="gloo", start_method="fork")
