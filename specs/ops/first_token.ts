/** The first token of each sequence, the input of BERT's pooler. */
import { op, tensor } from 'heddle'

export const firstToken = op('first_token', {
  dims: ['b', 's', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'b s n') },
  outputs: { y: tensor('T', 'b n') },
  body:
    ({ x }) =>
    (b, c) => ({ y: x(b, 0, c) }),
})
