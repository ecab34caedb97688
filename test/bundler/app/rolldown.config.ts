import { heddle } from 'heddle/bundler'
import { defineConfig } from 'rolldown'

export default defineConfig({
  input: 'main.ts',
  platform: 'node',
  plugins: [heddle()],
  output: { dir: 'dist' },
})
