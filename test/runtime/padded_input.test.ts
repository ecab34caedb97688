/** Inputs of a program in a layout with padding: their size is that of the layout, not of the elements. */
import { expect, it } from 'vitest'
import { type AssembledProgram, runProgram } from '../../src/runtime/program_run.js'

const writes: number[] = []
const program = {
  device: undefined,
  native: {
    run: async (inputs: readonly { readonly data: Uint8Array }[]) => {
      writes.push(...inputs.map(({ data }) => data.byteLength))
      return []
    },
  },
  flat: { inputs: { x: { info: { dtype: 'f32', shape: [3, 3], layout: 'col32' }, storage: 0 } }, outputs: {} },
  slice: () => ({ buffer: undefined, offset: 0, bytes: 384 }),
} as unknown as AssembledProgram

it('takes the bytes of the layout', async () => {
  await runProgram(program, { x: new Uint8Array(384) })
  expect(writes).toEqual([384])
})

it('refuses the bytes of the elements alone', () =>
  expect(runProgram(program, { x: new Uint8Array(36) })).rejects.toMatchObject({
    code: 'program.input',
    message: 'input x has 36 bytes: expected f32 [3, 3] in layout col32, 384 bytes',
  }))
