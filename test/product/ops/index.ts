/** Ops around matmuls that no shipped graph has. */
export * from './axes.js'
export * from './parts.js'
export * from './reductions.js'
export * from './rows.js'
