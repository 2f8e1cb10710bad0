/* Compiles if the structs and numbers that the C loader declares are those of cuda.h. */

#include <cuda.h>
#define TG_IMPLEMENTATION
#include "tracegraph_load.h"

#define SAME_SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), #theirs)
#define SAME_PLACE(ours, member, theirs, other)                                                    \
  _Static_assert(offsetof(ours, member) == offsetof(theirs, other), #theirs "." #other)
#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)

SAME_SIZE(tg_address, CUdeviceptr);
SAME_SIZE(tg_cu_kernel, CUDA_KERNEL_NODE_PARAMS_v3);
SAME_SIZE(tg_cu_kernel, CUDA_KERNEL_NODE_PARAMS_v2);
SAME_PLACE(tg_cu_kernel, grid, CUDA_KERNEL_NODE_PARAMS_v3, gridDimX);
SAME_PLACE(tg_cu_kernel, block, CUDA_KERNEL_NODE_PARAMS_v3, blockDimX);
SAME_PLACE(tg_cu_kernel, shared_bytes, CUDA_KERNEL_NODE_PARAMS_v3, sharedMemBytes);
SAME_PLACE(tg_cu_kernel, parameters, CUDA_KERNEL_NODE_PARAMS_v3, kernelParams);
SAME_PLACE(tg_cu_kernel, extra, CUDA_KERNEL_NODE_PARAMS_v3, extra);
SAME_PLACE(tg_cu_kernel, kernel, CUDA_KERNEL_NODE_PARAMS_v3, kern);
SAME_PLACE(tg_cu_kernel, context, CUDA_KERNEL_NODE_PARAMS_v3, ctx);
SAME_PLACE(tg_cu_kernel, kernel, CUDA_KERNEL_NODE_PARAMS_v2, kern);
SAME_PLACE(tg_cu_kernel, context, CUDA_KERNEL_NODE_PARAMS_v2, ctx);

SAME_SIZE(tg_cu_allocation, CUDA_MEM_ALLOC_NODE_PARAMS_v2);
SAME_PLACE(tg_cu_allocation, allocation_type, CUDA_MEM_ALLOC_NODE_PARAMS_v2, poolProps.allocType);
SAME_PLACE(tg_cu_allocation, location_type, CUDA_MEM_ALLOC_NODE_PARAMS_v2, poolProps.location.type);
SAME_PLACE(tg_cu_allocation, location, CUDA_MEM_ALLOC_NODE_PARAMS_v2, poolProps.location.id);
SAME_PLACE(tg_cu_allocation, access, CUDA_MEM_ALLOC_NODE_PARAMS_v2, accessDescs);
SAME_PLACE(tg_cu_allocation, access_count, CUDA_MEM_ALLOC_NODE_PARAMS_v2, accessDescCount);
SAME_PLACE(tg_cu_allocation, nbytes, CUDA_MEM_ALLOC_NODE_PARAMS_v2, bytesize);
SAME_PLACE(tg_cu_allocation, pointer, CUDA_MEM_ALLOC_NODE_PARAMS_v2, dptr);

SAME_SIZE(tg_cu_conditional, CUDA_CONDITIONAL_NODE_PARAMS);
SAME_PLACE(tg_cu_conditional, handle, CUDA_CONDITIONAL_NODE_PARAMS, handle);
SAME_PLACE(tg_cu_conditional, kind, CUDA_CONDITIONAL_NODE_PARAMS, type);
SAME_PLACE(tg_cu_conditional, body_count, CUDA_CONDITIONAL_NODE_PARAMS, size);
SAME_PLACE(tg_cu_conditional, bodies, CUDA_CONDITIONAL_NODE_PARAMS, phGraph_out);
SAME_PLACE(tg_cu_conditional, context, CUDA_CONDITIONAL_NODE_PARAMS, ctx);

SAME_SIZE(tg_cu_node, CUgraphNodeParams);
SAME_PLACE(tg_cu_node, kind, CUgraphNodeParams, type);
SAME_PLACE(tg_cu_node, of.kernel, CUgraphNodeParams, kernel);
SAME_PLACE(tg_cu_node, of.allocation, CUgraphNodeParams, alloc);
SAME_PLACE(tg_cu_node, of.conditional, CUgraphNodeParams, conditional);
SAME_PLACE(tg_cu_node, of.free, CUgraphNodeParams, free.dptr);

SAME_SIZE(tg_cu_edge, CUgraphEdgeData);
SAME_PLACE(tg_cu_edge, from_port, CUgraphEdgeData, from_port);
SAME_PLACE(tg_cu_edge, to_port, CUgraphEdgeData, to_port);
SAME_PLACE(tg_cu_edge, kind, CUgraphEdgeData, type);
SAME_SIZE(tg_cu_attribute, CUlaunchAttributeValue);
SAME_PLACE(tg_cu_attribute, cluster, CUlaunchAttributeValue, clusterDim);
SAME_PLACE(tg_cu_attribute, cooperative, CUlaunchAttributeValue, cooperative);

SAME(TG_CU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(TG_CU_MULTIPROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(TG_CU_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(TG_CU_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(TG_CU_SHARED_BYTES, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(TG_CU_COOPERATIVE, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
SAME(TG_CU_CLUSTER, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
SAME(TG_CU_NODE_KERNEL, CU_GRAPH_NODE_TYPE_KERNEL);
SAME(TG_CU_NODE_ALLOCATE, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
SAME(TG_CU_NODE_FREE, CU_GRAPH_NODE_TYPE_MEM_FREE);
SAME(TG_CU_NODE_CONDITIONAL, CU_GRAPH_NODE_TYPE_CONDITIONAL);
SAME(TG_CU_PINNED, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME(TG_CU_ON_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
SAME(TG_CU_PROGRAMMATIC, CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC);
SAME(TG_CU_PROGRAMMATIC, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
SAME(TG_CU_PORTABLE_AND_MAPPED, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
SAME(TG_CU_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME(TG_CU_NOT_TIMED, CU_EVENT_DISABLE_TIMING);
SAME(0, CU_GRAPH_COND_TYPE_IF);
SAME(1, CU_GRAPH_COND_TYPE_WHILE);
SAME(2, CU_GRAPH_COND_TYPE_SWITCH);
