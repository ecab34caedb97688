/** Kernels and graphs that authors asked of other tools: each against plain JavaScript, in float32 on the CPU device. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Device } from '../../../src/runtime/api/index.js'
import { hold } from './claims.js'
import { families, graphNames } from './families.js'
import { openAsked } from './project.js'

let opened: Awaited<ReturnType<typeof openAsked>>
const device = (): Device => opened.device
beforeAll(async () => {
  opened = await openAsked(graphNames)
})
afterAll(async () => {
  await opened?.close()
})

describe.each(Object.entries(families))('%s', (_, references) => {
  it.each(Object.entries(references))('%s', async (_name, reference) => {
    const claims = await reference(device())
    expect(claims.length).toBeGreaterThan(0)
    for (const claim of claims) hold(claim)
  })
})
