// Imports nothing, so that the scripts of pages may use it too.

/** Returns the CAIP-2 namespace, which names the chain family, of a chain id or of an account or asset on the chain. */
export const namespaceOf = (id: string): string => id.split(":", 1)[0] ?? "";
