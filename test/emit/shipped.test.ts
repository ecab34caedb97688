/** The manifest that ships is known by its digest and not read by its schema; any other is. */
import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { parseManifest } from '../../src/emit/manifest/manifest.js'
import { shippedManifest } from '../../src/emit/manifest/shipped.js'

/** Text that the schema refuses, which shows that the schema was applied. */
const text = JSON.stringify({ version: 1, kernels: 'none' })
const digestOf = (of: string): string => createHash('sha256').update(of).digest('hex')

test('the text with the known digest is trusted', () => {
  expect(parseManifest(text, 'm', undefined, digestOf(text))).toEqual({ version: 1, kernels: 'none' })
})

test.each([undefined, digestOf(`${text} `)])('another one is read by its schema if %s ships', (digest) => {
  expect(() => parseManifest(text, 'm', undefined, digest)).toThrow(expect.objectContaining({ code: 'manifest.invalid' }))
})

test('none is known if the code is not bundled', () => {
  expect(shippedManifest).toBe(undefined)
})
