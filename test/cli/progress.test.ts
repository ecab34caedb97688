/** Progress messages during compilation: names of kernels, for every device. */
import { expect, test } from 'vitest'
import { milestones } from '../../src/cli/progress.js'

test('a kernel is reported by its name and not by the language of its file', () => {
  const said: string[] = []
  const step = milestones(true, (text) => void said.push(text))
  step({ done: 1, total: 2, source: 'cuda/rms_norm__bf16.cu' })
  step({ done: 2, total: 2, source: 'model.safetensors' })
  expect(said).toEqual(['1/2 rms_norm__bf16', '2/2 model.safetensors'])
})
