import { GetPublicKeyCommand, KMSClient, SignCommand } from "@aws-sdk/client-kms";
import type { RemoteKey } from "./remote.ts";

/** A key in AWS KMS (ECC_SECG_P256K1, SIGN_VERIFY). Credentials come from AWS' usual chain (environment, role, profile). */
export type AwsKmsKey = { keyId: string; region: string; endpoint?: string | undefined };

/** One try may take this long, milliseconds; the client makes two. Both together are shorter than a lane's lease. */
const TIMEOUT_MS = 2_000;

/** Opens it; nothing is asked yet. */
export function openAwsKmsKey({ keyId: KeyId, region, endpoint }: AwsKmsKey): RemoteKey {
  const client = new KMSClient({
    region,
    ...(endpoint ? { endpoint } : {}),
    maxAttempts: 2,
    // Without the last member the client only warns.
    requestHandler: { requestTimeout: TIMEOUT_MS, connectionTimeout: TIMEOUT_MS, throwOnRequestTimeout: true },
  });
  return {
    async readPublicKey() {
      const { PublicKey } = await client.send(new GetPublicKeyCommand({ KeyId }));
      return Buffer.from(PublicKey ?? []);
    },
    async signDigest(digest) {
      const how = { MessageType: "DIGEST", SigningAlgorithm: "ECDSA_SHA_256" } as const;
      const { Signature } = await client.send(new SignCommand({ KeyId, Message: digest, ...how }));
      return Signature ?? Buffer.alloc(0);
    },
    isPassing,
  };
}

type AwsError = { name?: string; $metadata?: { httpStatusCode?: number } };

/** Throttling comes as 400 with a name; any other 4xx, and no credentials, say that somebody has to set it up. */
function isPassing(error: unknown): boolean {
  const { name = "", $metadata } = error as AwsError;
  if (name === "CredentialsProviderError") return false;
  const status = $metadata?.httpStatusCode ?? 0;
  return (
    /throttl|limitexceeded|timeout/i.test(name) || status === 408 || status === 429 || status < 400 || status >= 500
  );
}
