// HEDDLE_HOPPER: defined where main loops for Hopper are compiled. Those are all passes for GPUs, and the CPU device where a test asks for that GPU.
#ifndef HEDDLE_HOPPER_LOOPS_CUH
#define HEDDLE_HOPPER_LOOPS_CUH

#if !defined(HEDDLE_SIMT) || defined(HEDDLE_SIMT_HOPPER)
#define HEDDLE_HOPPER 1
#endif

#endif
