// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// Accepts a key's ECDSA signature over the digest (ERC-1271), as common wallets do.
abstract contract SignatureValidator {
    function isValidSignature(bytes32 digest, bytes calldata signature) external view returns (bytes4) {
        if (signature.length != 65) return 0xffffffff;
        bytes32 r = bytes32(signature[0:32]);
        bytes32 s = bytes32(signature[32:64]);
        address signer = ecrecover(digest, uint8(signature[64]), r, s);
        return signer != address(0) && signer == keyHolder() ? bytes4(0x1626ba7e) : bytes4(0xffffffff);
    }

    function keyHolder() internal view virtual returns (address);
}

/// A wallet with one owner, who can make it call anything.
contract OwnedWallet is SignatureValidator {
    address public immutable OWNER;

    constructor(address owner) {
        OWNER = owner;
    }

    function keyHolder() internal view override returns (address) {
        return OWNER;
    }

    function execute(address to, bytes calldata data) external {
        require(msg.sender == OWNER, "not the owner");
        (bool ok,) = to.call(data);
        require(ok, "the call failed");
    }
}

/// Creates wallets at addresses that can be computed in advance.
contract WalletFactory {
    uint256 public calls;

    function create(address owner) external returns (address) {
        calls += 1;
        address there = addressOf(owner);
        return there.code.length > 0 ? there : address(new OwnedWallet{salt: 0}(owner));
    }

    function addressOf(address owner) public view returns (address) {
        bytes32 code = keccak256(abi.encodePacked(type(OwnedWallet).creationCode, abi.encode(owner)));
        return address(uint160(uint256(keccak256(abi.encodePacked(bytes1(0xff), address(this), bytes32(0), code)))));
    }
}

/// Code for EIP-7702 delegation that accepts the key's own signatures.
contract Delegate is SignatureValidator {
    function keyHolder() internal view override returns (address) {
        return address(this);
    }
}

/// Code for EIP-7702 delegation that accepts no signatures.
contract SilentDelegate {
    function isValidSignature(bytes32, bytes calldata) external pure returns (bytes4) {
        return 0xffffffff;
    }
}

/// Accepts every signature at a gas price of zero, as in a careless simulation, and burns all gas otherwise.
contract PriceBurner {
    function isValidSignature(bytes32, bytes calldata) external view returns (bytes4) {
        if (tx.gasprice == 0) return 0x1626ba7e;
        assembly {
            invalid()
        }
    }
}

/// Accepts every signature up to a block number (slot 0) and burns all gas afterwards, which no simulation on an existing
/// block detects. `SALT` varies the hash of the code.
contract BlockBurner {
    uint256 public goodUntil;
    uint256 public immutable SALT;

    constructor(uint256 salt) {
        SALT = salt;
    }

    function isValidSignature(bytes32, bytes calldata) external view returns (bytes4) {
        if (block.number <= goodUntil) return 0x1626ba7e;
        assembly {
            invalid()
        }
    }
}
