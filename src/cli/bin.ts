#!/usr/bin/env node
/** The executable: runs the command line given to the process. */
import { main } from './main.js'

// A reader that has seen enough (`heddle inspect … | head`) is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.exit(0)
})

process.exitCode = await main(process.argv.slice(2))
