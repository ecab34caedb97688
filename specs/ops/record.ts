/** Keeps what each step yields: history(s, r) is what row r yielded in step s. The integers of step `step` join those of the steps before. */
import { op, tensor } from 'heddle'

export const record = op('record', {
  dims: ['s', 'r', 'o'],
  inputs: { history: tensor('i32', 's r'), x: tensor('i32', 'r'), step: tensor('i32', 'o') },
  outputs: { y: tensor('i32', 's r') },
  updates: { y: 'history' },
  body:
    ({ history, x, step }) =>
    (s, r) => ({ y: s === step(0) ? x(r) : history(s, r) }),
})
