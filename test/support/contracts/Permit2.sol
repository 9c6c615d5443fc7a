// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// A stand-in with the external behaviour of Uniswap's Permit2 for single signature transfers, written for
/// these tests because no package publishes deployable code of the original. Forks use the original.
interface IERC1271 {
    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4);
}

contract Permit2 {
    struct TokenPermissions {
        address token;
        uint256 amount;
    }

    struct PermitTransferFrom {
        TokenPermissions permitted;
        uint256 nonce;
        uint256 deadline;
    }

    struct SignatureTransferDetails {
        address to;
        uint256 requestedAmount;
    }

    error SignatureExpired(uint256 signatureDeadline);
    error InvalidAmount(uint256 maxAmount);
    error InvalidNonce();
    error InvalidSigner();
    error InvalidContractSignature();
    error InvalidSignatureLength();

    bytes32 private constant TOKEN_PERMISSIONS = keccak256("TokenPermissions(address token,uint256 amount)");
    bytes32 private constant PERMIT_TRANSFER_FROM = keccak256(
        "PermitTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline)TokenPermissions(address token,uint256 amount)"
    );

    mapping(address => mapping(uint256 => uint256)) public nonceBitmap;

    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        return keccak256(
            abi.encode(
                keccak256("EIP712Domain(string name,uint256 chainId,address verifyingContract)"),
                keccak256("Permit2"),
                block.chainid,
                address(this)
            )
        );
    }

    function permitTransferFrom(
        PermitTransferFrom memory permit,
        SignatureTransferDetails calldata details,
        address owner,
        bytes calldata signature
    ) external {
        if (block.timestamp > permit.deadline) revert SignatureExpired(permit.deadline);
        if (details.requestedAmount > permit.permitted.amount) revert InvalidAmount(permit.permitted.amount);
        uint256 bit = 1 << uint8(permit.nonce);
        uint256 word = permit.nonce >> 8;
        if (nonceBitmap[owner][word] & bit != 0) revert InvalidNonce();
        nonceBitmap[owner][word] |= bit;
        bytes32 permitted = keccak256(abi.encode(TOKEN_PERMISSIONS, permit.permitted));
        bytes32 struct_ =
            keccak256(abi.encode(PERMIT_TRANSFER_FROM, permitted, msg.sender, permit.nonce, permit.deadline));
        check(owner, keccak256(abi.encodePacked("\x19\x01", DOMAIN_SEPARATOR(), struct_)), signature);
        (bool ok, bytes memory data) = permit.permitted.token.call(
            abi.encodeWithSignature(
                "transferFrom(address,address,uint256)", owner, details.to, details.requestedAmount
            )
        );
        require(ok && (data.length == 0 || abi.decode(data, (bool))), "TRANSFER_FROM_FAILED");
    }

    function check(address owner, bytes32 hash, bytes calldata signature) private view {
        if (owner.code.length > 0) {
            if (IERC1271(owner).isValidSignature(hash, signature) != IERC1271.isValidSignature.selector) {
                revert InvalidContractSignature();
            }
            return;
        }
        (uint8 v, bytes32 r, bytes32 s) = split(signature);
        address signer = ecrecover(hash, v, r, s);
        if (signer == address(0) || signer != owner) revert InvalidSigner();
    }

    /// Splits a signature of 65 bytes, or of 64 bytes (ERC-2098).
    function split(bytes calldata signature) private pure returns (uint8, bytes32, bytes32) {
        if (signature.length != 64 && signature.length != 65) revert InvalidSignatureLength();
        (bytes32 r, bytes32 s) = abi.decode(signature[:64], (bytes32, bytes32));
        if (signature.length == 65) return (uint8(signature[64]), r, s);
        return (uint8(uint256(s) >> 255) + 27, r, s & bytes32(type(uint256).max >> 1));
    }
}
