/** The first token of each sequence, which BERT's pooler reads. */
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
