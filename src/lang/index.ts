/** The authoring surface: what `import { ... } from 'heddle'` offers to a spec. */
export type { AttrValue } from '../ir/graph.js'
export { GraphBuilder, type GraphDecl, type GraphTensor, graph, type MatmulResult } from './graph.js'
export * from './intrinsics.js'
export { type LayoutDecl, layout } from './layout.js'
export { op } from './op.js'
export { autoPlan, type PlanDecl, plan } from './plan.js'
export { tensor } from './tensor.js'
export type { Access, Op, Row, TensorDecl } from './types.js'
