import { GetPublicKeyCommand, KMSClient, SignCommand } from "@aws-sdk/client-kms";
import { z } from "zod";
import type { RemoteKey } from "./remote-signer.ts";

/**
 * A key in AWS KMS (ECC_SECG_P256K1, SIGN_VERIFY). Credentials come from the AWS provider chain (environment, role,
 * profile).
 */
export type AwsKmsKey = { keyId: string; region: string; endpoint?: string | undefined };

/** Timeout of one attempt in milliseconds. The client makes two; together they are shorter than a lane's lease. */
const TIMEOUT_MS = 2_000;

/** Opens the key without sending a request. */
export function openAwsKmsKey({ keyId: KeyId, region, endpoint }: AwsKmsKey): RemoteKey {
  const client = new KMSClient({
    region,
    ...(endpoint ? { endpoint } : {}),
    maxAttempts: 2,
    // Without throwOnRequestTimeout the client only logs a warning.
    requestHandler: { requestTimeout: TIMEOUT_MS, connectionTimeout: TIMEOUT_MS, throwOnRequestTimeout: true },
  });
  return {
    async readPublicKey() {
      const { PublicKey } = await client.send(new GetPublicKeyCommand({ KeyId }));
      return Buffer.from(PublicKey ?? []);
    },
    async signDigest(digest) {
      const command = new SignCommand({
        KeyId,
        Message: digest,
        MessageType: "DIGEST",
        SigningAlgorithm: "ECDSA_SHA_256",
      });
      const { Signature } = await client.send(command);
      return Signature ?? Buffer.alloc(0);
    },
    isTransient,
  };
}

const awsError = z.object({
  name: z.string().optional(),
  $metadata: z.object({ httpStatusCode: z.number().optional() }).optional(),
});

/** AWS reports throttling as 400 with an error name. Any other 4xx and missing credentials need the operator. */
function isTransient(error: unknown): boolean {
  const { name = "", $metadata } = awsError.safeParse(error).data ?? {};
  if (name === "CredentialsProviderError") return false;
  const status = $metadata?.httpStatusCode ?? 0;
  return (
    /throttl|limitexceeded|timeout/i.test(name) || status === 408 || status === 429 || status < 400 || status >= 500
  );
}
