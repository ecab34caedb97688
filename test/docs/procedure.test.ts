/** The page that is followed literally: its code compiles as one module, and the list for programs names existing pages. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { repository } from '../cli/host.js'
import { read } from '../frontend/refuse.js'
import { textOf } from './pages.js'

/** The TypeScript of a page, as one module. */
const codeOf = (page: string): string => [...textOf(page).matchAll(/^```ts\n([\s\S]*?)^```/gm)].map(([, code]) => code).join('\n')

it('the code of "write and check" compiles', () => {
  const { kernels, diagnostics } = read(codeOf('src/docs/guides/write-and-check.md'))
  expect(diagnostics).toEqual([])
  expect(kernels.map(({ name }) => name)).toEqual(['my_bias', 'my_softmax'])
})

it('llms.txt links to pages of the documents', () => {
  const links = [...textOf('src/docs/public/llms.txt').matchAll(/\]\(([^)]+)\)/g)].map(([, link]) => link ?? '')
  expect(links.length).toBeGreaterThan(10)
  expect(links.filter((link) => !existsSync(join(repository, 'src/docs', link)))).toEqual([])
})
