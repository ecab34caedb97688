/** Apps whose bundle contains specs: kernels are built with it, errors have their places, and a change builds again. */
import { existsSync } from 'node:fs'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type RolldownWatcherEvent, rolldown, watch } from 'rolldown'
import { createServer, build as viteBuild } from 'vite'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type HeddleOptions, heddle } from '../../src/bundler/index.js'
import { outputs } from '../../src/toolchain/index.js'
import { type App, bundledApp } from './app.js'

let app: App
beforeEach(async () => {
  app = await bundledApp()
})
afterEach(() => rm(app.root, { recursive: true, force: true }))

const input = () => ({ cwd: app.root, input: 'main.ts', platform: 'node' as const, logLevel: 'silent' as const })
const output = () => ({ dir: join(app.root, 'dist') })

async function bundle(options: HeddleOptions = {}): Promise<void> {
  await using made = await rolldown({ ...input(), plugins: [heddle({ root: app.root, ...options })] })
  await made.write(output())
}

const vite = (options: HeddleOptions, ssr: string | false) =>
  viteBuild({
    root: app.root,
    configFile: false,
    logLevel: 'silent',
    plugins: [heddle(options)],
    build: { ssr, outDir: 'dist', ...(ssr === false ? { rolldownOptions: { input: join(app.root, 'main.ts') } } : {}) },
  })

describe('a bundle', () => {
  it('of Rolldown calls kernels that were compiled with it', async () => {
    await bundle()
    expect(existsSync(outputs(app.root).library('simt'))).toBe(true)
    // No compiler is found, so that nothing can be compiled now.
    expect(await app.run('simt')).toEqual({ code: 0, output: 'simt 3 6 9 12\n' })
    const bundled = await readFile(join(app.root, 'dist/main.js'), 'utf8')
    expect([...bundled.matchAll(/from "([^"]+)"/g)].map(([, name]) => name).sort()).toEqual(['heddle', 'heddle/runtime'])
  })

  it('of Vite calls kernels on js, and compiles nothing for no target', async () => {
    await vite({ targets: [] }, 'main.ts')
    expect(existsSync(outputs(app.root).library('simt'))).toBe(false)
    expect(await app.run('js')).toEqual({ code: 0, output: 'js 3 6 9 12\n' })
  })

  it('without specs generates nothing', async () => {
    await writeFile(join(app.root, 'main.ts'), 'console.log(1)\n')
    await bundle()
    expect(existsSync(join(app.root, 'generated'))).toBe(false)
  })

  it('for browsers is refused', async () => {
    await expect(vite({ targets: [] }, false)).rejects.toThrow('bundler.browser: heddle/runtime runs in Node')
  })
})

it('reports an error of a spec at its place', async () => {
  await app.edit('specs/index.ts', 'factor * x(m, c)', 'factor * x(m, c + w)')
  const error = await bundle().catch((thrown: unknown) => thrown)
  expect(String(error)).toContain('HED101: unknown identifier w')
  const loc = { file: join(app.root, 'specs/index.ts'), line: 12, column: 38 }
  expect(error).toMatchObject({ errors: [{ plugin: 'heddle', loc, pluginCode: 'frontend.rejected' }] })
})

const source = () => readFile(join(app.root, 'generated/cuda/scaled__f32.cu'), 'utf8')

describe('a watching bundler', () => {
  /** Starts to watch. Each call of the returned function waits for the end of the next build, and returns its error, if any. */
  function watching() {
    const ended: RolldownWatcherEvent[] = []
    let wake = (): void => undefined
    const watcher = watch({
      ...input(),
      plugins: [heddle({ root: app.root })],
      output: output(),
      watch: { buildDelay: 50 },
    })
    watcher.on('event', (event) => {
      if (event.code !== 'ERROR' && event.code !== 'BUNDLE_END') return
      ended.push(event)
      wake()
    })
    const next = async (): Promise<RolldownWatcherEvent | undefined> => {
      while (ended.length === 0)
        await new Promise<void>((resume) => {
          wake = resume
        })
      return ended.shift()
    }
    return { next, close: () => watcher.close() }
  }

  it('generates again after a change of a spec, of an import of it, and of one with an error', async () => {
    const { next, close } = watching()
    expect((await next())?.code).toBe('BUNDLE_END')
    expect(await source()).toContain('3.0f')
    expect(existsSync(outputs(app.root).library('simt'))).toBe(false)
    await app.edit('specs/factor.ts', '3', '5')
    expect((await next())?.code).toBe('BUNDLE_END')
    expect(await source()).toContain('5.0f')
    await app.edit('specs/index.ts', 'x(m, c)', 'x(m)')
    expect((await next())?.code).toBe('ERROR')
    await app.edit('specs/index.ts', 'x(m)', 'x(m, c) + 7')
    expect((await next())?.code).toBe('BUNDLE_END')
    expect(await source()).toContain('7.0f')
    await close()
  })
  it("generates in Vite's server, again after a change of a module that was not loaded for it", async () => {
    let wake = (): void => undefined
    // Vite has dropped the old modules when it calls this hook. It is called for the generated files, too.
    const seen = {
      name: 'seen',
      hotUpdate: ({ file }: { readonly file: string }) => (file.endsWith('/specs/factor.ts') ? wake() : undefined),
    }
    const server = await createServer({
      root: app.root,
      configFile: false,
      logLevel: 'silent',
      appType: 'custom',
      server: { middlewareMode: true, ws: false },
      plugins: [heddle(), seen],
    })
    const scaled = async () => (await server.ssrLoadModule('/specs/index.ts')).scaled
    expect(await scaled()).toMatchObject({ name: 'scaled' })
    expect(await source()).toContain('3.0f')
    const changed = new Promise<void>((resume) => {
      wake = resume
    })
    await app.edit('specs/factor.ts', '3', '5')
    await changed
    await scaled()
    expect(await source()).toContain('5.0f')
    await server.close()
    expect(existsSync(outputs(app.root).library('simt'))).toBe(false)
  })
})
