/** The checks in the build of the site: each finds its fault. */
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createMarkdownRenderer } from 'vitepress'
import { expect, it } from 'vitest'
import { brokenAnchors } from '../../src/docs/.vitepress/anchors.js'
import { linksInside } from '../../src/docs/.vitepress/links.js'
import { place } from '../../src/docs/.vitepress/place.js'
import { repository } from '../cli/host.js'

it('finds headings that pages link to and do not have', async () => {
  const site = await mkdtemp(join(tmpdir(), 'heddle-site-'))
  await mkdir(join(site, 'guides'))
  const heading = '<h2 id="a">a</h2>'
  await writeFile(join(site, 'index.html'), `${heading}<a href="#a"></a><a href="/guides/x.html#b"></a><a href="/#a"></a>`)
  await writeFile(join(site, 'guides/x.html'), '<h2 id="b">b</h2><a href="../index.html#c"></a><a href="../index.html#a"></a>')
  expect(brokenAnchors(site)).toEqual(['guides/x.html links to ../index.html#c, which is not there'])
  await writeFile(join(site, 'index.html'), `${heading}<a href="/base/guides/x.html#b"></a><a href="/base/guides/y.html#b"></a>`)
  expect(brokenAnchors(site, '/base/')).toEqual([
    'guides/x.html links to ../index.html#c, which is not there',
    'index.html links to /base/guides/y.html#b, which is not there',
  ])
  await rm(site, { recursive: true })
})

it('shows links to repository files as text, and refuses broken ones', async () => {
  const pages = join(repository, 'src/docs')
  const markdown = await createMarkdownRenderer(pages, { highlight: (code) => code })
  markdown.use(linksInside, { pages, repository })
  const rendered = (text: string): string => markdown.render(text, { relativePath: 'tutorials/01-elementwise.md' })
  expect(rendered('[licence](../../../LICENSE) and [start](../index.md)')).toBe(
    '<p><span title="LICENSE of the repository">licence</span> and <a href="./../">start</a></p>\n',
  )
  expect(() => rendered('[gone](../../../GONE)')).toThrow('tutorials/01-elementwise.md: there is no ../../../GONE')
})

it('is placed next to foreign files in its folder', async () => {
  const root = await mkdtemp(join(tmpdir(), 'heddle-site-'))
  const [made, site] = [join(root, 'made'), join(root, 'site')]
  const build = async (name: string): Promise<void> => {
    await mkdir(join(made, 'guides'), { recursive: true })
    await writeFile(join(made, 'guides', name), name)
    await place(made, site, root)
  }
  await build('before.html')
  await writeFile(join(site, 'guides/mine.html'), 'mine')
  await build('now.html')
  expect(await readdir(join(site, 'guides'))).toEqual(['mine.html', 'now.html'])
  expect(await readFile(join(site, 'guides/mine.html'), 'utf8')).toBe('mine')
  await expect(build('mine.html')).rejects.toMatchObject({ code: 'output.file' })
  expect(await readFile(join(site, 'guides/mine.html'), 'utf8')).toBe('mine')
  await rm(root, { recursive: true })
})
