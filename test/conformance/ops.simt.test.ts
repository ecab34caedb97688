import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ops } from '../../specs/index.js'
import { readManifest } from '../../src/cli/pipeline.js'
import { casesOf } from '../../src/verify/cases.js'
import { runCase } from '../../src/verify/conformance.js'
import { type OpenSubject, openSubject, root } from './simt.js'

const manifest = await readManifest(root)

let subject: OpenSubject
beforeAll(async () => {
  subject = await openSubject(manifest)
})
afterAll(() => subject.device.close())

describe('generated kernels on the simt device equal their bodies', () => {
  it.each(manifest.kernels)('$key', async (entry) => {
    // The IR of a fused kernel is interpreted, which is slower than running a body.
    const cases = Object.hasOwn(ops, entry.op) ? casesOf(entry) : casesOf(entry, 12_000)
    const failures: string[] = []
    for (const test of cases) {
      const result = await runCase(subject, test)
      if (!result.passed) failures.push(`${result.name}: ${result.detail}`)
    }
    // Where rows have one length, and a long one, fewer cases are small enough.
    expect(cases.length).toBeGreaterThan(Object.keys(entry.fixedDims).length > 0 ? 20 : 100)
    expect(failures.slice(0, 5), `${failures.length} of ${cases.length} cases`).toEqual([])
  })
})
