/**
 * Names of the steps that passes add to a graph, after the node they stand beside: how a plan's edges and groups refer to them, and the
 * names under which int8 forms and scales are given and returned. Names are only made, never taken apart: what a pass or a program
 * has to know of a step, the graph says.
 */

/** Padding restored before a node, and removed behind it. */
export const unpackName = <N extends string>(node: N): `${N}.unpack` => `${node}.unpack`
export const packName = <N extends string>(node: N): `${N}.pack` => `${node}.pack`

/** The int8 form of a value, and floats of a value that is kept as int8 or was a product of integers. */
export const int8Name = <N extends string>(value: N): `${N}.int8` => `${value}.int8`
export const floatName = <N extends string>(value: N): `${N}.float` => `${value}.float`

/** Attributes of a value that is quantised: 127 / amax and amax / 127. */
export const inverseName = (value: string): string => `${value}.inverse`
export const stepName = (value: string): string => `${value}.step`

/** The steps of the rows of a value: of a weight, times that of what it multiplies, a weight of its own. */
export const stepsName = (value: string): string => `${value}.steps`

/** A weight of a stack: those of its nodes, one behind the other; of an op's input, or of a product. */
export const stackedName = (stack: string, input = 'weight'): string => `${stack}.${input}`
