/** Nodes of an encoder layer that become one attention kernel over packed rows: from a stacked QKV with its bias to the merged heads. */
export const attentionNodes = [
  'queryBias',
  'keyBias',
  'valueBias',
  'queryHeads.unpack',
  'keyHeads.unpack',
  'valueHeads.unpack',
  'queryHeads',
  'keyHeads',
  'valueHeads',
  'scores',
  'scaled',
  'masked',
  'probabilities',
  'context',
  'merged',
  'merged.pack',
] as const
