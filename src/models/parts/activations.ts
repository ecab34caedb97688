/**
 * Ops of feed-forward activations, by their names in HF configurations (activations.py). Four names are the same function,
 * `0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`. `gelu_fast` writes the root with ten digits, the same number in float32.
 */
export const activations = {
  gelu: 'gelu',
  gelu_python: 'gelu',
  gelu_new: 'gelu_tanh',
  gelu_pytorch_tanh: 'gelu_tanh',
  gelu_fast: 'gelu_tanh',
  gelu_accurate: 'gelu_tanh',
  relu: 'relu',
  silu: 'silu',
  swish: 'silu',
} as const

/** Name of an activation's op. */
export type Activation = (typeof activations)[keyof typeof activations]
