/** The page in a browser: at the widths of a phone, a laptop and a large screen, in both themes, from a file and without a network. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import axe from 'axe-core'
import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { views } from '../../src/explorer/model.js'
import { pageHtml } from '../../src/explorer/page.js'
import { serveLive } from '../../src/explorer/server.js'
import { encoderPage, graphPage } from './data.js'
import { historyPage } from './history_data.js'
import { cutTexts, kin, overflowing, overlappingTexts } from './page_checks.js'

const installed = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) => existsSync(path))
if (installed === undefined) console.warn('no page is looked at: Chromium is not installed (apt-get install chromium)')
const quiet =
  '--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync'
const widths = [390, 1280, 1920] as const
const themes = ['light', 'dark'] as const

const folder = mkdtempSync(join(tmpdir(), 'heddle-page-'))
let browser: Browser
let page: Page
/** Errors that the page logs, and requests other than the page itself. */
const [errors, requests]: [string[], string[]] = [[], []]

async function open(name: string, html: string): Promise<void> {
  const path = join(folder, name)
  writeFileSync(path, html)
  await page.goto(pathToFileURL(path).href)
}

const show = (view: string): Promise<void> => page.locator(`#tab-${view}`).click()

async function violations(): Promise<string[]> {
  const found: unknown = await page.evaluate('axe.run(document, { resultTypes: ["violations"] })')
  if (typeof found !== 'object' || found === null || !('violations' in found) || !Array.isArray(found.violations)) {
    throw new Error('axe has found nothing to say')
  }
  return found.violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ html }: { readonly html: string }) => html.slice(0, 140)).join(' | ')}`,
  )
}

beforeAll(async () => {
  if (installed === undefined) return
  browser = await chromium.launch({ executablePath: installed, args: quiet.split(' ') })
  page = await browser.newPage()
  page.on('pageerror', (error) => errors.push(String(error)))
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()))
  page.on('request', (request) => requests.push(request.url()))
})
afterAll(async () => {
  await browser?.close()
  rmSync(folder, { recursive: true, force: true })
})

describe.skipIf(installed === undefined)('every view', () => {
  it.each(themes)('fits its window and passes axe, %s', async (colorScheme) => {
    await page.emulateMedia({ colorScheme })
    for (const [name, data] of [
      ['graph.html', graphPage()],
      ['encoder.html', encoderPage()],
      ['history.html', historyPage()],
    ] as const) {
      await open(name, pageHtml(data))
      await page.evaluate(axe.source)
      for (const view of views) {
        if ((await page.locator(`#tab-${view}`).count()) === 0) continue
        for (const width of widths) {
          // Layout does not depend on the theme.
          if (colorScheme === 'dark' && width !== 1280) continue
          await page.setViewportSize({ width, height: 900 })
          await show(view)
          await page.waitForFunction(() => [...document.querySelectorAll('.chart')].every((each) => each.childElementCount > 0))
          const where = `${name} ${view} ${width} ${colorScheme}`
          expect(await page.evaluate(overflowing), where).toEqual([])
          expect(await page.evaluate(cutTexts), where).toEqual([])
          expect(await page.evaluate(overlappingTexts), where).toEqual([])
          if (width !== 1920) expect(await violations(), where).toEqual([])
          if (process.env.HEDDLE_SHOTS)
            await page.screenshot({ path: join(process.env.HEDDLE_SHOTS, `${where.replaceAll(' ', '-')}.png`), fullPage: true })
        }
      }
    }
    expect(errors).toEqual([])
    expect(requests.every((url) => url.startsWith('file:') || url.startsWith('data:'))).toBe(true)
  })

  it('has themes that differ', async () => {
    const background = (): Promise<string> => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
    await page.emulateMedia({ colorScheme: 'light' })
    const light = await background()
    await page.emulateMedia({ colorScheme: 'dark' })
    expect(await background()).not.toBe(light)
  })
})

describe.skipIf(installed === undefined)('user actions', () => {
  it('hovering a line highlights the matching lines of the other columns', async () => {
    await page.setViewportSize({ width: 1280, height: 900 })
    await open('graph.html', pageHtml(graphPage()))
    await show('kernel')
    // 64 registers of 128 threads: 8 warps in each quarter of a multiprocessor's registers, which are 8 of these blocks.
    const cells = page.locator('tr', { hasText: 'layer_norm_kept<' }).locator('td')
    expect((await cells.allTextContents()).slice(1)).toEqual(['sm_90', '128', '64', '0', '0', '0', '8', '50.0 %, by registers'])
    await page.locator('.line', { hasText: 'const variance = sum(' }).hover()
    const lit = await page.evaluate(kin)
    expect(lit).toContain('let variance: f32 = sum1 / toFloat(n)')
    expect(lit).toContain('const float variance = sum1 / static_cast<float>(n);')
    // The sum has no name in the body: it belongs to the statement that reads it.
    expect(lit).toContain('const float sum1 = team.reduce(sum1_lanes);')
    expect(lit.every((line) => /variance|sum1/.test(line) || line === 'FADD R7, R7, R9 ;')).toBe(true)
    // Machine code has the source line from which it comes.
    expect(lit).toContain('FADD R7, R7, R9 ;')
    await page.locator('.line', { hasText: 'FADD R7, R7, R9 ;' }).hover()
    const made = await page.evaluate(kin)
    expect(made.filter((line) => line.includes('_lanes.add('))).toHaveLength(1)
    expect(made).toContain('const variance = sum(n, (c) => (v(c) - mean) ** 2) / n')
    // A line without a source line: a declaration of a tensor is found by the tensor's name.
    await page.locator('.line', { hasText: 'LDC R1' }).hover()
    expect(await page.evaluate(kin)).toEqual([])
    await page.locator('.line', { hasText: 'let sum0: f32' }).hover()
    expect(await page.evaluate(kin)).toContain('const mean = sum(n, (c) => v(c)) / n')
    await page.locator('.line', { hasText: "dims: ['m', 'n']" }).hover()
    expect(await page.evaluate(kin)).toEqual([])
  })

  it('the keyboard moves between views, through passes, and down the lines of a column', async () => {
    await page.mouse.move(0, 0)
    await page.locator('#tab-plan').focus()
    await page.keyboard.press('ArrowRight')
    expect(await page.locator('[role=tab][aria-selected=true]').textContent()).toBe('Kernel')
    await page.getByLabel('pass', { exact: true }).focus()
    await page.keyboard.press('ArrowRight')
    expect(await page.locator('.line.changed').allTextContents()).toEqual(['  let row_rsqrt = rsqrt(variance + eps)'])
    await page.getByRole('region', { name: 'body', exact: true }).focus()
    for (let i = 0; i < 11; i++) await page.keyboard.press('ArrowDown')
    expect(await page.locator('.line.at').textContent()).toContain('const mean =')
    expect(await page.evaluate(kin)).toContain('let mean: f32 = sum0 / toFloat(n)')
  })

  it('chooses a step: why it ends there, its kin in the other plan, and its kernel', async () => {
    await show('plan')
    await page.getByRole('region', { name: 'drawing of unfused' }).locator('.box', { hasText: 'gelu' }).click()
    expect(await page.locator('.detail').textContent()).toContain('legal, the plan leaves it')
    expect(await page.locator('.box.kin .name').allTextContents()).toEqual(['matmul_bias_gelu_and_more_than_fits_in_a_box'])
    await page.getByRole('region', { name: 'drawing of fused' }).locator('.box', { hasText: 'layer_norm' }).click()
    await page.getByRole('button', { name: 'Open layer_norm__f16' }).click()
    expect(await page.locator('.pane h3').allTextContents()).toEqual(['Body', 'IR', 'CUDA', 'SASS'])
  })

  it('offers the plans that it does not draw, and describes the slowest step at first', async () => {
    const data = graphPage()
    if (data.plan === undefined) throw new Error('there is a plan')
    await open('picker.html', pageHtml({ ...data, plan: { ...data.plan, shown: ['unfused'] } }))
    await show('plan')
    const drawings = (): Promise<string[]> => page.locator('.plan h3').allTextContents()
    expect(await drawings()).toEqual(['unfused'])
    const [slowest] = (data.plan.plans[0]?.boxes ?? []).toSorted((a, b) => b.microseconds - a.microseconds)
    expect(await page.locator('.detail h3').first().textContent()).toBe(`${slowest?.kernel} in unfused`)
    await page.getByLabel('plan beside it').selectOption('fused')
    expect(await drawings()).toEqual(['unfused', 'fused'])
    await page.getByLabel('plan', { exact: true }).selectOption('fused')
    expect(await drawings()).toEqual(['fused'])
    await open('graph.html', pageHtml(graphPage()))
  })

  it('shows since which run a plan is slower, in words and at its place in the chart', async () => {
    await open('history.html', pageHtml(historyPage()))
    expect(await page.locator('[role=tab][aria-selected=true]').textContent()).toBe('History')
    const changes = await page.locator('.changes tbody tr').allTextContents()
    expect(changes).toHaveLength(2)
    expect(changes[0]).toMatch(
      /^slowerfused f(16|32) m=4096,n=1024 is slower, 1\.\d+ times .* since 1313131: matmul_bias_gelu__f16/,
    )
    const marks = await page.locator('.panels title', { hasText: 'is slower since 1313131' }).allTextContents()
    expect(marks).toHaveLength(2)
    await open('graph.html', pageHtml(graphPage()))
  })

  it('shows which plan became slower', async () => {
    await show('bench')
    expect(await page.locator('#compared .slower').count()).toBe(1)
    expect(await page.locator('#compared').textContent()).toContain('now.json compared with before.json')
  })
})

describe.skipIf(installed === undefined)('a live page', () => {
  it('draws other data without reloading, where the reader is, and shows states', async () => {
    const stop = new AbortController()
    // Times come later than sources.
    const { bench, ...first } = graphPage()
    const live = await serveLive(first, 0, stop.signal)
    await page.goto(live.url)
    await page.evaluate(() => Object.assign(window, { stays: 'here' }))
    await show('kernel')
    await page.getByLabel('pass', { exact: true }).focus()
    await page.keyboard.press('ArrowRight')
    live.tell('working', 'checking layer_norm')
    await page.getByRole('status').getByText('Working: checking layer_norm').waitFor()
    const [kernel, ...others] = first.kernels
    if (kernel === undefined) throw new Error('there is a kernel')
    const cuda = { ...kernel.cuda, text: '// other source', places: [] }
    expect(await page.getByRole('tab', { name: 'Bench' }).count()).toBe(0)
    live.show({ ...first, ...(bench && { bench }), title: 'other title', kernels: [{ ...kernel, cuda }, ...others] })
    live.tell('failed', 'FAIL layer_norm: 2 of 9 differ\n  case 1')
    await page.locator('.line', { hasText: '// other source' }).waitFor()
    await page.getByRole('region', { name: 'results' }).getByText('case 1').waitFor()
    expect(await page.locator('h1').textContent()).toBe('other title')
    expect(await page.locator('[role=tab][aria-selected=true]').textContent()).toBe('Kernel')
    // The pass that was chosen, and the same window.
    expect(await page.getByLabel('pass', { exact: true }).inputValue()).toBe('1')
    await page.getByRole('tab', { name: 'Bench' }).click()
    expect(await page.getByRole('heading', { name: bench?.runs.at(-1)?.title ?? 'no title', exact: true }).count()).toBe(1)
    expect(await page.evaluate(() => 'stays' in window)).toBe(true)
    await page.evaluate(axe.source)
    expect(await violations()).toEqual([])
    stop.abort()
    await live.closed
    await page.getByRole('status').getByText('The server has ended').waitFor()
    // The browser reports the stream that ended.
    errors.length = 0
    requests.length = 0
    await open('graph.html', pageHtml(graphPage()))
  })
})

describe.skipIf(installed === undefined)('checks of pages', () => {
  it('find elements that are wider than the window', async () => {
    await page.evaluate(() =>
      document.body.append(Object.assign(document.createElement('div'), { style: 'width: 3000px', textContent: 'wide' })),
    )
    expect((await page.evaluate(overflowing)).join()).toContain('wide')
  })
  it('find texts that are cut, outside, or overlapping', async () => {
    await page.evaluate(() => {
      const part =
        '<div style="width:20px;height:10px;overflow:hidden">a long text</div><div class="chart"><svg width="20" height="20">'
      document.body.innerHTML = `${part}<text x="5" y="15">outside</text><text x="6" y="14">above</text></svg></div>`
    })
    expect(await page.evaluate(cutTexts)).toEqual([
      'outside of its drawing: outside',
      'outside of its drawing: above',
      'cut: a long text',
    ])
    expect(await page.evaluate(overlappingTexts)).toEqual(['outside on above'])
  })
  it('find axe violations, errors, and requests', async () => {
    await page.evaluate(() => document.body.append(document.createElement('img')))
    await page.evaluate(axe.source)
    expect((await violations()).join()).toContain('image-alt')
    // The page's policy refuses requests to other hosts, and reports it; a page without one sends them.
    await page.evaluate(() => fetch('http://127.0.0.1:9/').catch(() => undefined))
    expect(errors.join()).toContain('Content Security Policy')
    expect(requests.some((url) => url.startsWith('http:'))).toBe(false)
    await open('bare.html', '<img alt="" src="http://127.0.0.1:9/">')
    expect(requests).toContain('http://127.0.0.1:9/')
  })
})
