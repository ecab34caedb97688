import { heddle } from 'heddle/bundler'
import { defineConfig } from 'vite'

export default defineConfig({ plugins: [heddle()] })
