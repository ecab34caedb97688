/** Activations of inner networks, by their names in HF configurations, and the op each one is. */
export const activations = {
  gelu: 'gelu',
  gelu_python: 'gelu',
  gelu_new: 'gelu_tanh',
  gelu_pytorch_tanh: 'gelu_tanh',
  relu: 'relu',
  silu: 'silu',
  swish: 'silu',
} as const

/** Name of an activation's op. */
export type Activation = (typeof activations)[keyof typeof activations]
