/**
 * JavaScript bundles that ship. `dist/` is the npm package: the command, the library and the specs, with dependencies left to npm.
 * `dist/portable.mjs` is the single file of the portable bundle. It contains everything except the front end, whose TypeScript compiler
 * would be most of it, and which a machine that only runs models does not need. `dist/explorer.js` is the script of the pages that
 * `heddle explore` writes, including its libraries. `dist/agent.mjs` is what `--on` sends to another machine.
 */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineConfig, type Plugin } from 'rolldown'
import packaged from './package.json' with { type: 'json' }
import { digestOf } from './src/source_digest.js'

const root = fileURLToPath(new URL('.', import.meta.url))
const dependencies = Object.keys(packaged.dependencies).map((name) => new RegExp(`^${name}(/|$)`))

/**
 * Dependencies that are bundled instead of left to npm. ts-morph is loaded by a separate module, and plugins can resolve only names that are not
 * external. The others have a hundred modules each, which Node takes longer to find than a small project's kernels take to compile.
 */
const packed = ['ts-morph', 'execa', 'zod', 'handlebars']

const specs = readdirSync(join(root, 'specs'), { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))

/** The front end's entry in the portable file: throws an error that names the missing part and the package that has it. */
const withoutFrontend: Plugin = {
  name: 'without-frontend',
  resolveId: (source) => (/\/frontend\/(index|searched)\.js$|^ts-morph$/.test(source) ? { id: '\0frontend' } : null),
  load: (id) =>
    id === '\0frontend'
      ? `import { environmentError } from '${join(root, 'src', 'errors.ts')}'
         const missing = () => {
           throw environmentError('portable.frontend', 'the portable bundle does not compile specs', { hint: 'use the npm package' })
         }
         export { missing as filesRead, missing as readBodies, missing as readSpecsOrThrow, missing as readDeclarations, missing as readDeclared, missing as readSearched, missing as readSuites, missing as searchDeclarations, missing as Project, missing as Node }`
      : null,
}

/** Digest of the shipped manifest: the tests validate it by its schema, so that no start has to. */
const shippedManifest: Plugin = {
  name: 'shipped-manifest',
  load(id) {
    if (id !== join(root, 'src', 'emit', 'manifest', 'shipped.ts')) return null
    const digest = createHash('sha256')
      .update(readFileSync(join(root, 'generated', 'manifest.json')))
      .digest('hex')
    return `export const shippedManifest = ${JSON.stringify(digest)}`
  },
}

/** Digest of the sources, so that the package does not hash them at every start. */
const ownDigest: Plugin = {
  name: 'own-digest',
  load: (id) =>
    id === join(root, 'src', 'compiler_digest.ts')
      ? `export const compilerDigest = () => ${JSON.stringify(digestOf(join(root, 'src')))}`
      : null,
}

/** Exports of ts-morph that the front end uses, from the module that loads it: Node reads all 13 MB again if they are imported as a module. */
const required: Plugin = {
  name: 'required-ts-morph',
  resolveId: (source) => (source === 'ts-morph' ? { id: '\0ts-morph' } : null),
  load: (id) =>
    id === '\0ts-morph'
      ? `import { tsMorph } from '${join(root, 'src', 'frontend', 'project', 'typescript.ts')}'
         export const { ModuleKind, ModuleResolutionKind, Node, Project, ScriptTarget, SyntaxKind, ts, VariableDeclarationKind } = tsMorph()`
      : null,
}

/** Licence text of a package; for one without a text, the licence and author stated in its package.json. */
function licenceOf(folder: string): string {
  const file = readdirSync(folder).find((name) => /^(licen[cs]e|copying)/i.test(name))
  if (file !== undefined) return readFileSync(join(folder, file), 'utf8')
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  if (typeof manifest.license !== 'string') throw new Error(`${folder} has no licence`)
  const author = typeof manifest.author === 'string' ? manifest.author : manifest.author?.name
  return `${manifest.name} ${manifest.version}, licence: ${manifest.license}${author === undefined ? '' : `, by ${author}`} (it comes without a text)`
}

/** Writes the licences of bundled packages to a file beside the output. */
const withLicences = (fileName: string): Plugin => ({
  name: 'with-licences',
  generateBundle() {
    const folders = new Set(
      [...this.getModuleIds()].flatMap((id) => /^.*\/node_modules\/(@[^/]+\/)?[^/]+(?=\/)/.exec(id)?.[0] ?? []),
    )
    const texts = [...folders].sort().map((folder) => {
      return `${folder.split('/node_modules/').at(-1)}\n\n${licenceOf(folder).trim()}\n`
    })
    this.emitFile({ type: 'asset', fileName, source: texts.join(`\n${'-'.repeat(80)}\n\n`) })
  },
})

const common = {
  platform: 'node',
  resolve: { alias: { 'heddle/std': join(root, 'src', 'std', 'index.ts'), heddle: join(root, 'src', 'index.ts') } },
  tsconfig: false,
} as const

/** Removes the output of an earlier build, except for the types: `npm run build` writes them again, and builds that only run code need none. */
const withoutLeftovers: Plugin = {
  name: 'without-leftovers',
  buildStart: () => {
    const dist = join(root, 'dist')
    for (const name of existsSync(dist) ? readdirSync(dist) : []) {
      if (name !== 'types') rmSync(join(dist, name), { recursive: true })
    }
  },
}

export default defineConfig([
  {
    ...common,
    plugins: [withoutLeftovers, shippedManifest, ownDigest, required, withLicences('licences.txt')],
    input: {
      bundler: 'src/bundler/index.ts',
      checkpoint: 'src/checkpoint/index.ts',
      cli: 'src/cli/bin.ts',
      commands: 'src/cli/index.ts',
      index: 'src/index.ts',
      job: 'src/cli/job.ts',
      lint: 'src/editor/lint.ts',
      pack_shipped: 'src/frontend/pack_shipped.ts',
      register: 'src/frontend/register.ts',
      typescript_hooks: 'src/frontend/typescript_hooks.ts',
      runtime: 'src/runtime/api/index.ts',
      std: 'src/std/index.ts',
      testing: 'src/verify/testing.ts',
      text: 'src/text/index.ts',
      ...Object.fromEntries(specs.map((file) => [`specs/${file.replace(/\.ts$/, '')}`, join('specs', file)])),
    },
    external: dependencies.filter((name) => !packed.some((each) => name.test(each))),
    output: { dir: 'dist', chunkFileNames: 'chunks/[name].js' },
  },
  {
    ...common,
    input: { 'typescript-plugin': 'src/editor/plugin.ts' },
    external: dependencies,
    // tsserver requires its plugins.
    output: { dir: 'dist', format: 'cjs', exports: 'default', entryFileNames: '[name].cjs', codeSplitting: false },
  },
  {
    ...common,
    input: 'src/cli/bin.ts',
    plugins: [shippedManifest, ownDigest, withoutFrontend, withLicences('portable-licences.txt')],
    output: { file: 'dist/portable.mjs', codeSplitting: false, minify: 'dce-only' },
  },
  {
    platform: 'node',
    tsconfig: false,
    input: 'src/runtime/remote/agent.ts',
    output: { file: 'dist/agent.mjs', codeSplitting: false, minify: true },
  },
  {
    platform: 'browser',
    tsconfig: false,
    input: 'src/explorer/client/main.ts',
    plugins: [withLicences('explorer-licences.txt')],
    output: { file: 'dist/explorer.js', format: 'iife', codeSplitting: false, minify: true },
  },
])
