/**
 * The import direction: data flows through the rooms of src/ from left to right, and a room imports only rooms to its left. The models
 * are assembled from the shipped specs; a spec imports the language and the standard library (by the package's name) and other specs,
 * nothing else, and the standard library the language. The one table of tolerances is everybody's.
 */
const rooms = [
  'ir',
  'lang',
  'std',
  'frontend',
  'editor',
  'fuse',
  'schedule',
  'loop',
  'cost',
  'search',
  'emit',
  'program',
  'toolchain',
  'runtime',
  'checkpoint',
  'text',
  'quant',
  'models',
  'verify',
  'bench',
  'explorer',
  'export',
  'cli',
  'bundler',
]

/** Folders of the front end, in the same order: modules beside them are its entry points. */
const frontEnd = [
  'diagnostics',
  'static',
  'types',
  'signature',
  'constructs',
  'recurrences',
  'lower',
  'cache',
  'project',
  'read',
  'run',
]

const within = (names) => `^src/(${names.join('|')})/`

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    { name: 'no-unresolved', severity: 'error', from: {}, to: { couldNotResolve: true } },
    ...rooms.slice(0, -1).map((room, i) => ({
      name: `${room}-imports-left`,
      severity: 'error',
      from: { path: within([room]) },
      to: { path: within(rooms.slice(i + 1)), pathNot: '^src/verify/tolerance\\.ts$' },
    })),
    ...frontEnd.map((folder, i) => ({
      name: `frontend-${folder}-imports-left`,
      severity: 'error',
      from: { path: `^src/frontend/${folder}/` },
      to: { path: [`^src/frontend/(${frontEnd.slice(i + 1).join('|')})/`, '^src/frontend/[^/]+$'] },
    })),
    {
      name: 'runtime-without-the-compiler',
      comment: 'The portable bundle runs models without the front end.',
      severity: 'error',
      from: { path: within(['runtime', 'checkpoint', 'text', 'models', 'quant']) },
      to: { path: [within(['frontend']), 'node_modules/(ts-morph|typescript)/'] },
    },
    {
      name: 'front-end-only-on-demand',
      comment: 'Verbs start fast, and the portable bundle leaves it out.',
      severity: 'error',
      from: { path: within(['cli', 'export', 'explorer', 'verify', 'bench']) },
      to: { path: [within(['frontend']), 'node_modules/ts-morph/'], dependencyTypesNot: ['dynamic-import', 'type-only'] },
    },
    {
      name: 'specs-import-the-language',
      severity: 'error',
      from: { path: '^specs/' },
      to: { path: '^src/', pathNot: '^src/(std/)?index\\.ts$' },
    },
    {
      name: 'std-imports-the-language',
      comment: 'Its modules ship as they are, and are compiled in the project of whoever uses them.',
      severity: 'error',
      from: { path: within(['std']) },
      to: { pathNot: ['^src/index\\.ts$', within(['std'])] },
    },
    {
      name: 'only-models-and-tools-import-specs',
      comment: 'Layouts, and steps between them, are what shipped plans hold values in: whoever runs a plan may need them.',
      severity: 'error',
      from: { path: '^src/', pathNot: within(['models', 'quant', 'verify', 'bench', 'cli']) },
      to: { path: '^specs/', pathNot: '^specs/(layouts|conversions)\\.ts$' },
    },
    {
      name: 'errors-import-nothing',
      comment: 'But for the type of the record that has a text for each code.',
      severity: 'error',
      from: { path: ['^src/errors\\.ts$', '^src/codes/'] },
      to: { path: '^src/', pathNot: '^src/codes/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'require', 'node', 'default'] },
  },
}
