/** Kernels and graphs that authors asked of other tools, where no other project has them. */
export * from './kernels.js'
export * from './low_bit.js'
