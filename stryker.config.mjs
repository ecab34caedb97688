/** Mutation testing of the passes that derive and schedule kernels; CONTRIBUTING says how it is run. Stryker is no dependency. */
export default {
  mutate: ['src/fuse/**/*.ts', 'src/schedule/**/*.ts'],
  testRunner: 'vitest',
  vitest: { configFile: 'test/mutation/vitest.config.ts', related: false },
  plugins: ['@stryker-mutator/vitest-runner', './test/mutation/sample.mjs'],
  checkers: ['sample'],
  reporters: ['sample', 'progress-append-only'],
  coverageAnalysis: 'perTest',
  // Tables that are made while a module loads would have to be tried on all tests.
  ignoreStatic: true,
  ignorePatterns: ['dist', '.heddle', 'native/build', 'generated'],
  concurrency: 2,
  // A busy machine is no mutant that loops: loops are told by how often they are gone through.
  timeoutMS: 600_000,
  dryRunTimeoutMinutes: 60,
  tempDirName: '.heddle/stryker',
}
