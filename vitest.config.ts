import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

/** Tests are grouped by what they need, read from the file name: nothing (`x.test.ts`), `x.simt.test.ts`, `x.nvcc.test.ts`. The gpu group runs from the bundle: `heddle selftest`. */
const alias = { heddle: fileURLToPath(new URL('./src/index.ts', import.meta.url)) }
const needs = ['simt', 'nvcc']

export default defineConfig({
  resolve: { alias },
  test: {
    projects: [
      {
        extends: true,
        test: { name: 'nothing', include: ['test/**/*.test.ts'], exclude: needs.map((need) => `test/**/*.${need}.test.ts`) },
      },
      ...needs.map((need) => ({
        extends: true as const,
        test: { name: need, include: [`test/**/*.${need}.test.ts`], testTimeout: 600_000, hookTimeout: 600_000 },
      })),
    ],
  },
})
