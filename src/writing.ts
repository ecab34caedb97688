/** What the file system refuses, in words: a full disk and a folder that may not be written to are no defects of heddle. */
import { environmentError, type HeddleError } from './errors.js'

const hints: Readonly<Record<string, string>> = {
  ENOSPC:
    'free some space, or name a folder on another disk: HEDDLE_CACHE for what is compiled, TMPDIR for what compilers leave for a moment',
  EDQUOT: 'free some space, or name a folder elsewhere with HEDDLE_CACHE',
  EFBIG: 'allow larger files: ulimit -f unlimited',
  EACCES: 'make it writable, or name another folder for the cache with HEDDLE_CACHE',
  EPERM: 'make it writable, or name another folder for the cache with HEDDLE_CACHE',
  EROFS: 'make it writable, or name another folder for the cache with HEDDLE_CACHE',
  EEXIST: 'a file is where a folder has to be: remove it, or name another folder for the cache with HEDDLE_CACHE',
  ENOTDIR: 'a file is where a folder has to be: remove it, or name another folder for the cache with HEDDLE_CACHE',
}

const reasons: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full',
  EDQUOT: "the disk's quota is used up",
  EFBIG: 'the file is larger than the process may write (ulimit -f)',
  EACCES: 'permission is denied',
  EPERM: 'permission is denied',
  EROFS: 'the file system is read-only',
  EEXIST: 'a file has its name',
  ENOTDIR: 'a part of the path is a file',
}

/** The failure of a write to `path`, if it is one of those. */
function refusal(path: string, error: unknown): HeddleError | undefined {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
  if (!Object.hasOwn(reasons, code)) return undefined
  return environmentError(
    ['ENOSPC', 'EDQUOT', 'EFBIG'].includes(code) ? 'cache.full' : 'cache.write',
    `cannot write ${path}: ${reasons[code]}`,
    {
      hint: hints[code] ?? '',
      cause: error,
    },
  )
}

/** What `action` returns. @throws environment `cache.full`, `cache.write` for what the file system refuses; else what `action` throws */
export async function writing<T>(path: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action()
  } catch (error) {
    throw refusal(path, error) ?? error
  }
}

/** A compiler's complaint about a full disk, or about a limit on the size of files. @throws environment `cache.full` */
export function refuseFullDisk(path: string, complaint: string): void {
  if (/file size limit exceeded|file too large/i.test(complaint)) {
    throw environmentError(
      'cache.full',
      `the limit on the size of files (ulimit -f) is too small: ${path} could not be compiled`,
      {
        hint: hints.EFBIG ?? '',
        cause: complaint,
      },
    )
  }
  if (!/no space left on device|disk quota exceeded/i.test(complaint)) return
  throw environmentError('cache.full', `the disk is full: ${path} could not be compiled`, {
    hint: hints.ENOSPC ?? '',
    cause: complaint,
  })
}
