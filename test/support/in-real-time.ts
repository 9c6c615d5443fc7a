/**
 * Options of a test with a limit of real time that the service promises. It is repeated when another process has taken the
 * processor meanwhile.
 */
export const inRealTime = { retry: 3 } as const;
