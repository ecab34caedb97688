/**
 * Hooks of Node's module loader for TypeScript: types are stripped file by file, with source maps so that breakpoints and errors have their source
 * locations. Nothing is type-checked: `tsc` and `heddle gen` do that. Modules of packages are left alone.
 */
import { readFile } from 'node:fs/promises'
import type { LoadHook, ResolveHook } from 'node:module'
import { fileURLToPath } from 'node:url'

const isTypeScript = (url: string): boolean => /^file:.*\.m?ts(\?|$)/.test(url) && !url.includes('/node_modules/')

/** Resolves `./ops.js` to `./ops.ts` if only that exists, as TypeScript does. */
export const resolve: ResolveHook = async (specifier, context, next) => {
  try {
    return await next(specifier, context)
  } catch (error) {
    const isOwn = /^\.{0,2}\//.test(specifier) && context.parentURL !== undefined && isTypeScript(context.parentURL)
    const source = specifier.replace(/\.(m?)js$/, '.$1ts')
    if (!isOwn || source === specifier) throw error
    try {
      return await next(source, context)
    } catch {
      // The error names the missing module as it was written.
      throw error
    }
  }
}

export const load: LoadHook = async (url, context, next) => {
  if (!isTypeScript(url)) return next(url, context)
  const fileName = fileURLToPath(url)
  const [text, { ts }] = await Promise.all([readFile(fileName, 'utf8'), import('ts-morph')])
  const { outputText } = ts.transpileModule(text, {
    fileName,
    compilerOptions: {
      module: ts.ModuleKind.ESNext,
      target: ts.ScriptTarget.ES2023,
      inlineSourceMap: true,
      inlineSources: true,
    },
  })
  return { format: 'module', source: outputText, shortCircuit: true }
}
