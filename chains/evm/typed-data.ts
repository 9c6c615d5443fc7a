import type { TypedDataDefinition } from "viem";

/**
 * Parses typed data in the JSON that wallets receive, such as the result of `typedDataJson`. Removes EIP712Domain from the
 * types: viem adds it itself and refuses a second one. Does not validate the JSON.
 */
export function parseTypedData(json: string): TypedDataDefinition {
  const definition: TypedDataDefinition = JSON.parse(json);
  const { EIP712Domain: _, ...types } = definition.types;
  return { ...definition, types };
}
