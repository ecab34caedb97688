/**
 * Names of the nodes that passes add to a graph, derived from the adjacent node. A plan's edges and groups refer to them by these names, and
 * int8 forms and scales are supplied and returned under them. Names are only composed, never parsed: the graph has all other data about
 * such a node.
 */

/** Node that restores padding before a node, and node that removes it after it. */
export const unpackName = <N extends string>(node: N): `${N}.unpack` => `${node}.unpack`
export const packName = <N extends string>(node: N): `${N}.pack` => `${node}.pack`

/** The int8 form of a value, and the floats of a value that is stored as int8 or was an integer matmul. */
export const int8Name = <N extends string>(value: N): `${N}.int8` => `${value}.int8`
export const floatName = <N extends string>(value: N): `${N}.float` => `${value}.float`

/** Scale attributes of a quantised value: 127 / amax and amax / 127. */
export const inverseName = (value: string): string => `${value}.inverse`
export const scaleName = (value: string): string => `${value}.step`

/** Scales of the rows of a value. For a weight, they are times the scale of the other operand, and are a weight themselves. */
export const scalesName = (value: string): string => `${value}.steps`

/** A weight of a stack: the concatenated weights of its nodes, for an op's input or for a matmul. */
export const stackedName = (stack: string, input = 'weight'): string => `${stack}.${input}`
