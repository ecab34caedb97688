/** Nodes of a decoder layer that become one attention kernel each, in every plan that groups them. */

/** From the cache updates to the heads' results; the step's keys and values come from a stack or from their biases. */
export const selfAttentionNodes = [
  'queryBias',
  'keyBias',
  'valueBias',
  'keyCache',
  'valueCache',
  'keyPast',
  'valuePast',
  'scores',
  'scaled',
  'masked',
  'probabilities',
  'context',
] as const

/** Nodes from the query bias to the merged heads. */
export const crossAttentionNodes = [
  'crossQueryHeads',
  'crossScores',
  'crossScaled',
  'crossMasked',
  'crossProbabilities',
  'crossContext',
  'crossMerged',
] as const
