/**
 * `node --import heddle/register main.ts`: lets Node import TypeScript modules, so that the caller of a spec, which is written for `heddle gen`,
 * can import it as well. In a JavaScript module: `import 'heddle/register'`, then `await import('./specs/double.ts')`.
 */
import { register } from 'node:module'

register('./typescript_hooks.js', import.meta.url)
